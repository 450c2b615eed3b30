"""docs/measures.md and the table of metrics say the same."""

from __future__ import annotations

import re
from pathlib import Path

from flexgroup.metrics.catalogue import METRICS
from flexgroup.metrics.durations import STATISTICS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measures.md"


def test_the_page_defines_every_metric_in_the_words_of_the_table() -> None:
    rows = dict(re.findall(r"^\| `(\w+\*?)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    defined = {}
    for name, meaning in rows.items():
        for metric in [name] if name[-1] != "*" else [name[:-1] + each for each in STATISTICS]:
            defined[metric] = meaning
    for table in ("measures", "points", "packets"):
        del defined[table]
    assert defined == {metric.name: metric.meaning for metric in METRICS.values()}
