"""Golden scripts: `tests/scripts/*.txt`, each a conversation that must go exactly as written.

That each does is a test of its own, which the plugin of `flexgroup.pytest_plugin` collects.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import PROTOCOLS, parse_stack
from flexgroup.testing.script import check, parse, rewrite

SCRIPTS = sorted((Path(__file__).parents[1] / "scripts").glob("*.txt"))

# What a script must show besides going as written: the violations that its verdict names.
VIOLATIONS = {
    "abcast_holder_crashes": "validity: violated, b never reaches process 2",
    "reliable_fifo_subsets": "validity: violated, b never reaches process 2",
    "best_effort_cycle": "acyclic order: violated, a < b < c < a",
    "best_effort_unreliable": "validity: violated, a never reaches process 1",
    "causal_rst_crash": "validity: violated, c never reaches process 1",
    "fifo_no_total_order": "acyclic order: violated, a < b < a",
    "xamp_best_effort_no_responses": "validity: violated, a never reaches process 2",
    "xamp_atomic_published_cycle": "acyclic order: violated, a < b < a",
    "xamp_atomic_crashed_differs": "acyclic order: violated, a < b < a",
    "dcc_published_cycle": "acyclic order: violated, b < c < d < b",
    "dcc_published_false_fast": "acyclic order: violated, a < c < b < a",
    "dcc_published_stuck": "validity: violated, b never reaches process 4",
    "dcc_cft_published_overtaken": "acyclic order: violated, a < b < c < a",
    "byzcast_published_omission": "acyclic order: violated, a < b < a",
    "dcc_bft_published_omission": "acyclic order: violated, a < b < c < a",
    "ft_abcast_published_early_end": "validity: violated, b never reaches process 1",
    "vcube_atomic_published_order": "acyclic order: violated, a < b < a",
    "skeen_equivocation": "acyclic order: violated, a < b < a",
}


def stack_of(text: str) -> str:
    found = re.search(r"^stack (.+) over ", text, re.MULTILINE)
    assert found is not None
    return found[1]


def test_scripts_say_what_they_show() -> None:
    first_lines = {path.name: path.read_text(encoding="utf-8").splitlines()[0] for path in SCRIPTS}
    silent = {
        name for name, line in first_lines.items() if not line.startswith("# ") or len(line) <= 40
    }
    assert not silent


def test_only_these_scripts_show_a_violation() -> None:
    shown = {
        path.stem: violations
        for path in SCRIPTS
        if (
            violations := [
                line
                for line in path.read_text(encoding="utf-8").splitlines()
                if ": violated, " in line
            ]
        )
    }
    assert shown.keys() == VIOLATIONS.keys()
    assert [name for name in shown if VIOLATIONS[name] not in shown[name]] == []


def test_every_protocol_has_at_least_three_scripts() -> None:
    counts = Counter(
        parse_stack(stack_of(path.read_text(encoding="utf-8"))).top.name for path in SCRIPTS
    )
    assert set(counts) == set(PROTOCOLS)
    few = [name for name, row in PROTOCOLS.items() if counts[name] < 3 and not row.always]
    assert not few, counts


def test_a_changed_answer_is_shown_beside_the_expected_one() -> None:
    text = (SCRIPTS[0].parent / "df_single_destination.txt").read_text(encoding="utf-8")
    wrong = text.replace("  1: a b\n", "  1: b a\n")
    (mismatch,) = check(wrong)
    assert str(mismatch) == (
        "line 20: in-flight; delivered; verdict\n"
        "  expected\n      nothing\n      0: -\n      1: b a\n    holds\n"
        "  answered\n      nothing\n      0: -\n      1: a b\n    holds"
    )
    assert rewrite(wrong) == text


def test_rewriting_a_script_that_goes_as_written_changes_nothing() -> None:
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8")
        assert rewrite(text) == text, path.name


@pytest.mark.parametrize(
    ("commands", "complaint"),
    [
        ("deliver 0->1", "must begin with a stack"),
        ("stack skeen", "write: stack NAME over fifo channels"),
        ("stack skeen over fifo channels, processes 0", "at least one process"),
        ("stack nobody over fifo channels, processes 2", "unknown protocol 'nobody'"),
        ("stack dcc over reordering channels, processes 2", "missing fifo"),
        ("SKEEN\ncast 0 a to=0,2", "destination 2 does not exist; processes are 0 to 1"),
        ("SKEEN\ncast 0 a", "write: cast ORIGIN NAME to=0,2"),
        ("SKEEN\ncast 0 a to=0\ncast 0 a to=1", "message 'a' has been cast before"),
        ("SKEEN\ndeliver 0->1", "no packet 0 in flight from 0 to 1"),
        ("SKEEN\ndeliver 0 to 1", "write for example 2->1"),
        ("SKEEN\ncast 0 a to=1\ncast 0 b to=1\ndeliver 0->1 1", "channels are fifo"),
        ("SKEEN\ntimer 0 retry", "process 0 has not set a timer 'retry'"),
        ("SKEEN\nchoose 1 0", "process 1 has offered no choice"),
        ("SKEEN\ncrash 2", "there is no process 2; they are 0 to 1"),
        ("SKEEN\ncrash one", "'one' is not a number"),
        ("SKEEN\nexplode 1", "unknown command 'explode'"),
        ("----", "an answer without a command"),
    ],
)
def test_a_bad_command_says_what_to_write(commands: str, complaint: str) -> None:
    text = commands.replace("SKEEN", "stack skeen over fifo channels, processes 2")
    with pytest.raises(UsageError, match=re.escape(complaint)):
        check(text)


def test_a_script_without_answers_is_a_list_of_commands() -> None:
    (block,) = parse("stack df over fifo channels, processes 2\ncast 2 a to=0 # alone\n")
    assert block.commands == ["stack df over fifo channels, processes 2", "cast 2 a to=0"]
    assert block.expected == []


ANSWERS = """
import sys
from flexgroup.testing.script import rewrite
print(rewrite(open(sys.argv[1], encoding="utf-8").read()))
"""


@pytest.mark.parametrize(
    "name", ["skeen_prevents_cycle", "fifo_dcc_reordering", "causal_rst_crash"]
)
def test_no_answer_depends_on_the_hash_seed(name: str) -> None:
    """Rule 1 of the core: equal state and event give equal effects, in every process."""
    path = SCRIPTS[0].parent / f"{name}.txt"
    answers = [
        subprocess.run(
            [sys.executable, "-c", ANSWERS, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert answers[0] == answers[1] == path.read_text(encoding="utf-8") + "\n"
