"""The written-out table of protocols."""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.core.layer import Layer
from flexgroup.protocols.all2all_atomic import All2AllAtomic
from flexgroup.protocols.atomic import Atomic
from flexgroup.protocols.best_effort import BestEffort
from flexgroup.protocols.causal import Causal
from flexgroup.protocols.causal_rst import CausalRst
from flexgroup.protocols.dcc import Dcc
from flexgroup.protocols.dcc_published import DccPublished
from flexgroup.protocols.df import DelporteFauconnier
from flexgroup.protocols.fifo import Fifo
from flexgroup.protocols.heartbeat import Heartbeat
from flexgroup.protocols.reliable import Reliable
from flexgroup.protocols.skeen import Skeen
from flexgroup.protocols.vcube_atomic import VCubeAtomic
from flexgroup.protocols.vcube_atomic_majority import VCubeAtomicMajority
from flexgroup.protocols.vcube_atomic_published import VCubeAtomicPublished
from flexgroup.protocols.vcube_best_effort import VCubeBestEffort
from flexgroup.protocols.vcube_detector import VCubeDetector
from flexgroup.protocols.vcube_reliable import VCubeReliable
from flexgroup.protocols.xamp_at_least import XampAtLeast, XampReliable
from flexgroup.protocols.xamp_atomic import XampAtomic
from flexgroup.protocols.xamp_best_effort import XampBestEffort
from flexgroup.protocols.xamp_causal import XampCausal

ALL = "all"
LAST = "last"


@dataclass(frozen=True)
class Protocol:
    """A row of the table."""

    name: str
    layer: type[Layer]
    summary: str
    source: str
    faults: str
    genuine: str
    answers: str
    """Who answers a client that multicast: all destinations, or the last (highest) one."""


PROTOCOLS: dict[str, Protocol] = {
    row.name: row
    for row in (
        Protocol(
            "best-effort",
            BestEffort,
            "send to every destination, deliver on arrival; no order",
            "folklore; Cachin, Guerraoui, Rodrigues 2011",
            faults="crashes of receivers",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "reliable",
            Reliable,
            "acknowledge, ask again, retransmit: exactly once over channels that lose",
            "Trans; Jalote 1994; FlexGroup, section 4.3.1",
            faults="crashes, loss, duplication",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "fifo",
            Fifo,
            "deliver what each process multicasts in that order",
            "Hadzilacos and Toueg 1994",
            faults="none",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "causal",
            Causal,
            "vector clocks: deliver nothing before what happened before it",
            "Birman, Schiper and Stephenson 1991",
            faults="crashes",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "causal-rst",
            CausalRst,
            "the same with a matrix, and only to the destinations",
            "Raynal, Schiper and Toueg 1991",
            faults="crashes of receivers",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "atomic",
            Atomic,
            "Newtop, symmetric: one logical clock, deliver what all have passed",
            "Ezhilchelvan, Macêdo and Shrivastava 1995",
            faults="crashes, but not agreement on the last messages",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "skeen",
            Skeen,
            "destinations exchange timestamps, deliver by the highest",
            "Skeen; Birman and Joseph 1987",
            faults="none",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "df",
            DelporteFauconnier,
            "walk up the destinations, each waiting for the end",
            "Delporte-Gallet and Fauconnier 2000",
            faults="none",
            genuine="yes",
            answers=LAST,
        ),
        Protocol(
            "dcc",
            Dcc,
            "Daisy Chain Cast, corrected: walk up without waiting, with edge clocks",
            "after Louzada 2024, chapter 4",
            faults="none",
            genuine="partly",
            answers=LAST,
        ),
        Protocol(
            "dcc-published",
            DccPublished,
            "Daisy Chain Cast as published: neither safe nor live",
            "Louzada 2024, algorithms 4.1 to 4.3",
            faults="none",
            genuine="partly",
            answers=LAST,
        ),
        Protocol(
            "vcube-detector",
            VCubeDetector,
            "failure detector: tests along a hypercube, news from whoever answers",
            "Duarte, Bona and Ruoso 2014",
            faults="crashes",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "heartbeat",
            Heartbeat,
            "failure detector: all tell all that they are there; time-outs grow",
            "folklore; Cachin, Guerraoui, Rodrigues 2011",
            faults="crashes",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "vcube-best-effort",
            VCubeBestEffort,
            "broadcast through a spanning tree of a hypercube that mends itself; no order",
            "Rodrigues, Arantes and Duarte 2014",
            faults="crashes of receivers, with a perfect detector",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "vcube-reliable",
            VCubeReliable,
            "the same, and what a crashed process sent to some reaches all",
            "Rodrigues, Arantes and Duarte 2014",
            faults="crashes, with a perfect detector",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "vcube-atomic",
            VCubeAtomic,
            "timestamps of all, told through the spanning trees of a hypercube, corrected",
            "after Ruchel and others 2021, algorithm 1",
            faults="crashes, with a perfect detector",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "vcube-atomic-published",
            VCubeAtomicPublished,
            "the same as published: crashes break order and agreement",
            "Ruchel and others 2021, algorithm 1",
            faults="none",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "vcube-atomic-majority",
            VCubeAtomicMajority,
            "the same, and a majority decides on the order if somebody is suspected",
            "after Ruchel and others 2021 and Chandra and Toueg 1996",
            faults="crashes of fewer than half, suspicions that are wrong",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "all2all-atomic",
            All2AllAtomic,
            "timestamps of all, sent by each to each",
            "after Ruchel and others 2021, section 5",
            faults="crashes, with a perfect detector",
            genuine="no",
            answers=ALL,
        ),
        Protocol(
            "xamp-best-effort",
            XampBestEffort,
            "the sender repeats until enough destinations have responded",
            "Rodrigues and Veríssimo 1992",
            faults="losses, crashes of receivers",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "xamp-at-least",
            XampAtLeast,
            "receivers repeat as well, so that enough get it if the sender fails",
            "Rodrigues and Veríssimo 1992",
            faults="losses, crashes",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "xamp-reliable",
            XampReliable,
            "receivers repeat as well, so that all get it if the sender fails",
            "Rodrigues and Veríssimo 1992",
            faults="losses, crashes",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "xamp-causal",
            XampCausal,
            "messages carry the history that they depend on; receivers repeat",
            "Rodrigues and Veríssimo 1992",
            faults="losses, crashes",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "xamp-atomic",
            XampAtomic,
            "two-phase accept by the sender, corrected: places instead of arrival",
            "after Rodrigues and Veríssimo 1992",
            faults="losses, crashes, with a perfect detector",
            genuine="yes",
            answers=ALL,
        ),
    )
}
