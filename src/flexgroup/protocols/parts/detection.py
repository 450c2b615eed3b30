"""What both failure detectors have in common: the times, and how they carry messages."""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.message import Message, Packet

INTERVAL: Final = 30
"""Ticks from one round to the next."""

TIMEOUT: Final = 4
"""Ticks that others may take to be heard of, at first."""

PATIENT: Final = "patient"
PATIENT_TIMEOUT: Final = 2000
"""The same for real machines, on which processes may stand still for a while."""


@final
class Data(Packet):
    """What the layer above sends."""

    m: Message


def first_timeout(options: frozenset[str]) -> int:
    return PATIENT_TIMEOUT if PATIENT in options else TIMEOUT
