"""A stack for each protocol of the table: some rest on a log for each group of replicas."""

from __future__ import annotations

from flexgroup.core.guarantees import Guarantee
from flexgroup.protocols.catalogue import PROTOCOLS


def rests_on_a_log(name: str) -> bool:
    return Guarantee.TOTAL in PROTOCOLS[name].layer.NEEDS


RUNNABLE_STACKS = [f"log {name}" if rests_on_a_log(name) else name for name in PROTOCOLS]
