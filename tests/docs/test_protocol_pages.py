"""The pages of the protocols agree with the catalogue, the wire and the code they speak of."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from random import Random

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.guarantees import names
from flexgroup.core.layer import Record
from flexgroup.core.message import Message, Packet
from flexgroup.core.replicas import Replicas
from flexgroup.core.state import state_names
from flexgroup.protocols.catalogue import PROTOCOLS, Answers, StackPlan, parse_stack
from flexgroup.testing.conformance import whole_stack
from flexgroup.worlds.bench import Bench

from .fences import ROOT, code_words, fences, links, name_of, prose, tables

FOLDER = ROOT / "docs" / "protocols"
INDEX = FOLDER / "README.md"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path != INDEX)

ANSWERS = {Answers.ALL: "all destinations", Answers.LAST: "the last destination"}

# The column of a page's tables that names our code, and whose code it names.
CODE_COLUMNS = {
    ("reliable.md", "ours"): "reliable",
    ("causal.md", "ours"): "causal",
    ("causal-rst.md", "ours"): "causal-rst",
    ("causal-ses.md", "ours"): "causal-ses",
    ("causal-isis.md", "ours"): "causal-isis",
    ("atomic.md", "ours"): "atomic",
    ("safe.md", "ours"): "safe",
    ("virtual-synchrony.md", "ours"): "virtual-synchrony",
    ("abcast.md", "ours"): "abcast",
    ("skeen.md", "ours"): "skeen",
    ("df.md", "ours"): "df",
    ("fifo.md", "ours"): "fifo",
    ("best-effort.md", "ours"): "best-effort",
    ("dcc.md", "`dcc_published`"): "dcc-published",
    ("dcc.md", "`dcc`"): "dcc",
    ("leader.md", "ours"): "leader",
    ("paxos.md", "ours"): "paxos",
    ("pbft.md", "ours"): "pbft",
    ("protected-memory.md", "ours"): "protected-memory",
    ("ramcast.md", "ours"): "ramcast",
    ("primcast.md", "ours"): "primcast",
    ("replicated.md", "ours"): "dcc-cft",
    ("ft-abcast.md", "ours"): "ft-abcast",
    ("byzcast.md", "ours"): "byzcast",
    ("dcc-bft.md", "ours"): "dcc-bft",
    ("white-box.md", "ours"): "white-box",
    ("vcube-atomic.md", "`vcube_atomic`"): "vcube-atomic",
    ("vcube-atomic-majority.md", "`vcube_atomic_majority`"): "vcube-atomic-majority",
}


def index_table(column: str) -> list[dict[str, str]]:
    (table,) = [table for table in tables(INDEX) if column in table[0]]
    return table


def test_every_protocol_is_in_the_index_with_its_guarantees() -> None:
    rows = {row["stack"].strip("`"): row for row in index_table("needs")}
    assert set(rows) == set(PROTOCOLS)
    for name, row in rows.items():
        layer = PROTOCOLS[name].layer
        assert row["needs"] == names(layer.NEEDS)
        assert row["gives"] == names(layer.GIVES)
        assert row["keeps"] == names(layer.KEEPS)


def test_every_page_is_in_the_index() -> None:
    assert {path.name for path in PAGES} <= set(links(INDEX))


def test_who_answers_is_what_the_catalogue_says() -> None:
    for row in index_table("who answers a client"):
        name = row["stack"].split(",")[0].strip("`")
        assert row["who answers a client"] == ANSWERS[PROTOCOLS[name].answers]


def replicas_for(plan: StackPlan, size: int) -> Replicas:
    return (tuple(range(size)),) if plan.needs_replicas else ()


def header_formulas() -> list[tuple[str, str, str]]:
    return [
        (row["stack"].strip("`"), row["packet"].strip("`"), row["bytes"].strip("`"))
        for row in index_table("bytes")
    ]


def all_packets(bench: Bench) -> Iterator[Packet]:
    """Let everything arrive, and every timer that is set run out a few times."""
    for _ in range(4):
        while bench.channels:
            yield bench.deliver(*next(iter(bench.channels)))
        for process, timers in bench.timers.items():
            for level, name in list(timers):
                bench.end_timer(process, level, name)


def innermost(sent: Packet) -> Packet:
    """The packet of the top layer, or of one below it that sends its own."""
    payload = getattr(getattr(sent, "m", None), "payload", None)
    return innermost(payload) if isinstance(payload, Packet) else sent


def variables(sent: Packet, destinations: int) -> dict[str, int]:
    """What formulas call the lengths of fields; a message may be older than the last cast."""
    m = getattr(sent, "m", None)
    return {
        "k": len(m.destinations) if isinstance(m, Message) else destinations,
        "c": len(getattr(sent, "changed", ())) // 2,
        "a": len(getattr(sent, "acks", ())) // 2,
        "g": len(getattr(sent, "nacks", ())) // 3,
        "s": len(getattr(sent, "st", ())),
        "v": len(getattr(sent, "vm", ())),
        "t": len(getattr(sent, "T", ()) or getattr(sent, "news", ())) // 2,
        "b": len(getattr(sent, "messages", ()) or getattr(sent, "requests", ())),
        "d": len(getattr(sent, "ballots", ())),
    }


@pytest.mark.parametrize(("stack", "packet", "formula"), header_formulas())
def test_headers_have_the_size_that_the_index_says(stack: str, packet: str, formula: str) -> None:
    plan = parse_stack(whole_stack(stack) if stack in PROTOCOLS else stack)
    codec = Codec(plan.layers[-1:])
    random = Random(1)
    seen = 0
    for n in (2, 5, 8):
        bench = Bench(plan, n, replicas=replicas_for(plan, n))
        for _ in range(5):  # so few that all numbers fit into a byte
            k = n if plan.needs_replicas else random.randint(1, n)
            bench.cast(n - 1 if plan.closed else n, tuple(sorted(random.sample(range(n), k))))
            for sent in map(innermost, all_packets(bench)):
                if type(sent).__name__ == packet:
                    size = eval(formula, {"n": n, **variables(sent, k)})
                    assert codec.measure(sent).header_bytes == size
                    seen += 1
    assert seen > 5


def test_the_index_knows_every_packet() -> None:
    listed = {(stack.split("/")[0], packet) for stack, packet, _ in header_formulas()}
    sent = {
        (name, packet.__name__)
        for name, protocol in PROTOCOLS.items()
        if not protocol.always  # otherwise another name has the same layer
        for packet in protocol.layer.PACKETS
    }
    unlisted = {("dcc-published", "Enter")}  # the same as that of dcc
    unlisted.add(("abcast", "Token"))  # which moves after many messages only
    unlisted.add(("virtual-synchrony", "Flush"))  # which only a view brings about
    unlisted |= {
        (name, packet)
        for name in ("vcube-atomic", "all2all-atomic")
        for packet in ("Flush", "Agreed")  # which only a crash brings about
    }
    unlisted |= {
        ("vcube-atomic-majority", packet)
        for packet in ("Copy", "Flush", "Close", "Propose", "Accept", "Decide")  # a suspicion
    }
    restarted = ("Resume", "Known", "Again", "Back")
    unlisted |= {("ft-abcast", packet) for packet in restarted}
    unlisted |= {
        ("pbft", packet)  # many messages, or a view that ends
        for packet in ("Checkpoint", "ViewChange", "NewView", "Fetch", "Fetched")
    }
    unlisted |= {
        ("paxos", packet)
        for packet in (
            "Prepare",
            "Promise",
            "Reject",
            "Ask",
            "Learn",
            "More",
            "Stable",
            "Restarted",
            "Requests",
        )  # likewise
    }
    unlisted |= {("byzcast", packet) for packet in ("Transfer", "Confirm")}  # several groups
    unlisted.add(("ft-abcast", "End"))  # which a message to several groups brings about
    unlisted |= {
        ("ramcast", packet)
        for packet in ("Ask", "Grant", "Deny", "NewState", "Permit", "Delivered", "Restarted")
    }
    unlisted.add(("ramcast", "Timestamp"))  # which goes to other groups
    unlisted.add(("protected-memory", "Completion"))  # which protocols above bring about
    unlisted |= {
        ("primcast", packet)  # likewise, or a clock that is behind
        for packet in ("Bump", "NewEpoch", "Promise", "NewState", "AcceptEpoch", "Restarted")
    }
    unlisted |= {
        ("white-box", packet)
        for packet in (
            "NewLeader",
            "NewLeaderAck",
            "NewState",
            "NewStateAck",
            "Abandoned",
            "Restarted",
        )
    }
    several_at_once = {
        "white-box": ("Accepts", "AcceptAcks", "Delivers"),
        "primcast": ("Proposals", "Acks"),
        "ramcast": ("Proposes", "Timestamps", "Acks"),
    }
    unlisted |= {(name, packet) for name in several_at_once for packet in several_at_once[name]}
    unlisted |= {
        ("xamp-atomic", packet)
        for packet in ("Reject", "RequestDecision", "Inquiry", "State")  # likewise, or a loss
    }
    assert sent - listed == unlisted


@pytest.mark.parametrize(("page", "column"), CODE_COLUMNS)
def test_what_the_tables_name_is_in_the_code(page: str, column: str) -> None:
    protocol = PROTOCOLS[CODE_COLUMNS[page, column]]
    module = import_module(protocol.layer.__module__)
    plan = parse_stack(protocol.name)
    layer = plan.builder(3, replicas=replicas_for(plan, 3))(0).layers[0]
    parts = [getattr(layer, name) for name in state_names(layer)]
    parts = [part for part in parts if isinstance(part, Record)]
    fields = {field for packet in protocol.layer.PACKETS for field, _ in packet.FIELDS}
    cells = [row[column] for table in tables(FOLDER / page) for row in table if column in row]
    words = [word for cell in cells for word in code_words(cell)]
    assert len(words) > 1
    missing = [
        word
        for word in words
        if not (
            hasattr(layer, word)
            or hasattr(module, word)
            or word in fields
            or any(hasattr(part, word) for part in parts)
            or (Path(str(module.__file__)).parent / "parts" / f"{word}.py").exists()
        )
    ]
    assert not missing, f"{page} names {missing}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_says_what_every_page_says(page: Path) -> None:
    text = prose(page)
    for item in ("*Source*", "*Assumes*", "*Guarantees*", "*Genuine*", "*Who answers a client*"):
        assert f"- {item}" in text
    for heading in ("## Costs", "## A worked example"):
        assert heading in text
    assert any(fence.language == "script" for fence in fences(page))


def test_tests_and_scripts_that_the_pages_name_exist() -> None:
    for page in [INDEX, *PAGES]:
        for word in code_words(prose(page)):
            if word.startswith(("tests/", "src/", "benchmarks/")):
                assert list(ROOT.glob(word)), f"{name_of(page)} names {word}"
