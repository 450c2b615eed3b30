"""The written-out table of protocols."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from flexgroup.core.layer import Layer
from flexgroup.protocols.abcast import Abcast
from flexgroup.protocols.all2all_atomic import All2AllAtomic
from flexgroup.protocols.atomic import Atomic
from flexgroup.protocols.best_effort import BestEffort
from flexgroup.protocols.byzcast import ByzCast
from flexgroup.protocols.causal import Causal
from flexgroup.protocols.causal_isis import CausalIsis
from flexgroup.protocols.causal_rst import CausalRst
from flexgroup.protocols.causal_ses import CausalSes
from flexgroup.protocols.dcc import Dcc
from flexgroup.protocols.dcc_published import DccPublished
from flexgroup.protocols.dcc_wide import DccWide
from flexgroup.protocols.df import DelporteFauconnier
from flexgroup.protocols.fifo import Fifo
from flexgroup.protocols.ft_abcast import PUBLISHED as FT_ABCAST_PUBLISHED
from flexgroup.protocols.ft_abcast import FtAbcast
from flexgroup.protocols.heartbeat import Heartbeat
from flexgroup.protocols.leader import LeaderOracle
from flexgroup.protocols.log import Log
from flexgroup.protocols.parts.vouched_channels import AS_THEY_COME
from flexgroup.protocols.paxos import Paxos
from flexgroup.protocols.pbft import Pbft
from flexgroup.protocols.primcast import PrimCast
from flexgroup.protocols.protected_memory import ProtectedMemory
from flexgroup.protocols.ramcast import RamCast
from flexgroup.protocols.reliable import Reliable
from flexgroup.protocols.replicated import FIRST_COPY, Replicated
from flexgroup.protocols.replicated_bft import ReplicatedBft
from flexgroup.protocols.safe import Safe
from flexgroup.protocols.skeen import Skeen
from flexgroup.protocols.vcube_atomic import VCubeAtomic
from flexgroup.protocols.vcube_atomic_majority import VCubeAtomicMajority
from flexgroup.protocols.vcube_atomic_published import VCubeAtomicPublished
from flexgroup.protocols.vcube_best_effort import VCubeBestEffort
from flexgroup.protocols.vcube_detector import VCubeDetector
from flexgroup.protocols.vcube_reliable import VCubeReliable
from flexgroup.protocols.virtual_synchrony import VirtualSynchrony
from flexgroup.protocols.white_box import WhiteBox
from flexgroup.protocols.xamp_at_least import XampAtLeast
from flexgroup.protocols.xamp_atomic import PUBLISHED, XampAtomic
from flexgroup.protocols.xamp_best_effort import XampBestEffort
from flexgroup.protocols.xamp_causal import XampCausal
from flexgroup.protocols.xamp_reliable import XampReliable


class Fault(StrEnum):
    """What may go wrong without a protocol breaking its promises."""

    LOSSES = "losses"
    DUPLICATION = "duplication"
    CRASHES = "crashes"
    CRASHES_OF_RECEIVERS = "crashes of receivers"
    CRASHES_OF_FEWER_THAN_HALF = "crashes of fewer than half"
    CRASHES_OF_FEWER_THAN_A_THIRD = "crashes of fewer than a third"
    CRASHES_WITHOUT_AGREEMENT = "crashes, but not agreement on the last messages"
    WRONG_SUSPICIONS = "suspicions that are wrong"
    RESTARTS = "restarts of who has crashed"
    BYZANTINE = "Byzantine processes, fewer than a third of a group"


CRASHES = frozenset(
    {
        Fault.CRASHES,
        Fault.CRASHES_OF_RECEIVERS,
        Fault.CRASHES_OF_FEWER_THAN_HALF,
        Fault.CRASHES_OF_FEWER_THAN_A_THIRD,
        Fault.CRASHES_WITHOUT_AGREEMENT,
        Fault.BYZANTINE,
    }
)
"""The faults that include crashes: a process that has crashed is a Byzantine one that is silent."""


class Genuine(StrEnum):
    """Whether only the origin and the destinations of a message take part in its delivery."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"


class Answers(StrEnum):
    """Which of the destinations answer a client that multicast a message."""

    ALL = "all"
    LAST = "last"


@dataclass(frozen=True)
class Protocol:
    """A row of the table."""

    name: str
    layer: type[Layer]
    summary: str
    source: str
    faults: tuple[Fault, ...] = ()
    """The faults that it tolerates."""
    detector: bool = False
    """Whether it tolerates crashes only if a perfect failure detector tells it of them."""
    genuine: Genuine = Genuine.NO
    answers: Answers = Answers.ALL
    always: frozenset[str] = frozenset()
    """The options of the layer that this name stands for."""

    @property
    def tolerates_crashes(self) -> bool:
        return not CRASHES.isdisjoint(self.faults)

    @property
    def faults_in_words(self) -> str:
        faults = ", ".join(self.faults) or "none"
        return f"{faults}, with a perfect detector" if self.detector else faults


PROTOCOLS: dict[str, Protocol] = {
    row.name: row
    for row in (
        Protocol(
            "best-effort",
            BestEffort,
            "send to every destination, deliver on arrival; no order",
            "folklore; Cachin, Guerraoui, Rodrigues 2011",
            faults=(Fault.CRASHES_OF_RECEIVERS,),
            genuine=Genuine.YES,
        ),
        Protocol(
            "reliable",
            Reliable,
            "acknowledge, ask again, retransmit: exactly once over channels that lose",
            "Trans; Jalote 1994; FlexGroup, section 4.3.1",
            faults=(Fault.CRASHES, Fault.LOSSES, Fault.DUPLICATION),
            genuine=Genuine.YES,
        ),
        Protocol(
            "fifo",
            Fifo,
            "deliver what each process multicasts in that order",
            "Hadzilacos and Toueg 1994",
            genuine=Genuine.YES,
        ),
        Protocol(
            "causal",
            Causal,
            "vector clocks: deliver nothing before what happened before it",
            "Birman, Schiper and Stephenson 1991",
            faults=(Fault.CRASHES,),
        ),
        Protocol(
            "causal-rst",
            CausalRst,
            "the same with a matrix, and only to the destinations",
            "Raynal, Schiper and Toueg 1991",
            faults=(Fault.CRASHES_OF_RECEIVERS,),
            genuine=Genuine.YES,
        ),
        Protocol(
            "causal-ses",
            CausalSes,
            "the same with a vector time, and one for each process that was sent something",
            "Schiper, Eggli and Sandoz 1989",
            faults=(Fault.CRASHES_OF_RECEIVERS,),
            genuine=Genuine.YES,
        ),
        Protocol(
            "causal-isis",
            CausalIsis,
            "the first Isis: a message brings along what precedes it, and nothing waits",
            "Birman and Joseph 1987",
            faults=(Fault.CRASHES,),
            detector=True,
            genuine=Genuine.PARTLY,
        ),
        Protocol(
            "atomic",
            Atomic,
            "Newtop, symmetric: one logical clock, deliver what all have passed",
            "Ezhilchelvan, Macêdo and Shrivastava 1995",
            faults=(Fault.CRASHES_WITHOUT_AGREEMENT,),
        ),
        Protocol(
            "safe",
            Safe,
            "on top of any order: deliver what all destinations have acknowledged",
            "Transis; Totem; Hadzilacos and Toueg 1994",
            faults=(Fault.CRASHES_OF_RECEIVERS,),
            detector=True,
            genuine=Genuine.PARTLY,
        ),
        Protocol(
            "virtual-synchrony",
            VirtualSynchrony,
            "on top of any order: a flush, so that all deliver the same between two views",
            "Birman and Joseph 1987; FlexGroup, sections 2.2.6 and 4.3",
            faults=(Fault.CRASHES_OF_RECEIVERS,),
            genuine=Genuine.PARTLY,
        ),
        Protocol(
            "abcast",
            Abcast,
            "Isis and Amoeba: the holder of a token numbers all messages",
            "Birman, Schiper and Stephenson 1991; Kaashoek and Tanenbaum 1991",
        ),
        Protocol(
            "skeen",
            Skeen,
            "destinations exchange timestamps, deliver by the highest",
            "Skeen; Birman and Joseph 1987",
            genuine=Genuine.YES,
        ),
        Protocol(
            "df",
            DelporteFauconnier,
            "walk up the destinations, each waiting for the end",
            "Delporte-Gallet and Fauconnier 2000",
            genuine=Genuine.YES,
            answers=Answers.LAST,
        ),
        Protocol(
            "dcc",
            Dcc,
            "Daisy Chain Cast, corrected: walk up without waiting, with edge clocks",
            "after Louzada 2024, chapter 4",
            genuine=Genuine.PARTLY,
            answers=Answers.LAST,
        ),
        Protocol(
            "dcc-wide",
            DccWide,
            "DCC that visits, between destinations, only who may know something new",
            "after Louzada 2024, section 8.2",
            genuine=Genuine.PARTLY,
            answers=Answers.LAST,
        ),
        Protocol(
            "dcc-published",
            DccPublished,
            "Daisy Chain Cast as published: neither safe nor live",
            "Louzada 2024, algorithms 4.1 to 4.3",
            genuine=Genuine.PARTLY,
            answers=Answers.LAST,
        ),
        Protocol(
            "vcube-detector",
            VCubeDetector,
            "failure detector: tests along a hypercube, news from whoever answers",
            "Duarte, Bona and Ruoso 2014",
            faults=(Fault.CRASHES, Fault.RESTARTS),
        ),
        Protocol(
            "heartbeat",
            Heartbeat,
            "failure detector: all tell all that they are there; time-outs grow",
            "folklore; Cachin, Guerraoui, Rodrigues 2011",
            faults=(Fault.CRASHES, Fault.RESTARTS),
        ),
        Protocol(
            "leader",
            LeaderOracle,
            "leader oracle: the lowest replica of a group that is not suspected",
            "Chandra, Hadzilacos and Toueg 1996; Cachin, Guerraoui, Rodrigues 2011",
            faults=(Fault.CRASHES, Fault.RESTARTS),
            genuine=Genuine.YES,
        ),
        Protocol(
            "paxos",
            Paxos,
            "a log for each group of replicas: ballots of a leader, and majorities",
            "Lamport 1998 and 2001",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_HALF,
                Fault.WRONG_SUSPICIONS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.YES,
        ),
        Protocol(
            "pbft",
            Pbft,
            "a log for each group of replicas, a third of which may lie: views of a primary",
            "Castro and Liskov 1999 and 2002",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_A_THIRD,
                Fault.WRONG_SUSPICIONS,
                Fault.BYZANTINE,
            ),
            genuine=Genuine.YES,
        ),
        Protocol(
            "protected-memory",
            ProtectedMemory,
            "one-sided writes into the memory of others, if the owner permits",
            "Aguilera and others 2019",
            faults=(
                Fault.CRASHES_OF_RECEIVERS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.YES,
        ),
        Protocol(
            "ramcast",
            RamCast,
            "leaders write timestamps into the memory of followers, who acknowledge",
            "after Le and others 2021",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_HALF,
                Fault.WRONG_SUSPICIONS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.YES,
        ),
        Protocol(
            "primcast",
            PrimCast,
            "atomic multicast among groups of replicas: epochs of a primary, clocks of majorities",
            "Pacheco, Coelho and Pedone 2023",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_HALF,
                Fault.WRONG_SUSPICIONS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.YES,
        ),
        Protocol(
            "white-box",
            WhiteBox,
            "skeen with replicated destinations: leaders propose, majorities of all groups accept",
            "Gotsman, Lefort and Chockler 2019",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_HALF,
                Fault.WRONG_SUSPICIONS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.YES,
        ),
        Protocol(
            "log",
            Log,
            "an abstract log for each group of replicas, to explore what rests on one",
            "folklore: a sequencer",
            genuine=Genuine.YES,
        ),
        Protocol(
            "skeen-cft",
            Replicated,
            "Skeen's algorithm between groups of replicas, over a log",
            "after Fritzke and others 1998 and Schneider 1990",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_HALF,
                Fault.WRONG_SUSPICIONS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.YES,
            always=frozenset({"skeen"}),
        ),
        Protocol(
            "df-cft",
            Replicated,
            "D&F's algorithm between groups of replicas, over a log",
            "after Delporte-Gallet and Fauconnier 2000 and Schneider 1990",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_HALF,
                Fault.WRONG_SUSPICIONS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.YES,
            answers=Answers.LAST,
            always=frozenset({"df"}),
        ),
        Protocol(
            "dcc-cft",
            Replicated,
            "Daisy Chain Cast, corrected, between groups of replicas, over a log",
            "after Louzada 2024, section 5.1, and Schneider 1990",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_HALF,
                Fault.WRONG_SUSPICIONS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.PARTLY,
            answers=Answers.LAST,
            always=frozenset({"dcc"}),
        ),
        Protocol(
            "dcc-cft-published",
            Replicated,
            "the same as published: neither safe nor live, crashes or not",
            "Louzada 2024, algorithms 5.1 to 5.3",
            genuine=Genuine.PARTLY,
            answers=Answers.LAST,
            always=frozenset({"dcc-published", FIRST_COPY}),
        ),
        Protocol(
            "ft-abcast",
            FtAbcast,
            "D&F between groups of replicas: all members send on and wait for the end",
            "after Louzada 2024, algorithm 3.3; Delporte-Gallet and Fauconnier 2000",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_HALF,
                Fault.WRONG_SUSPICIONS,
                Fault.RESTARTS,
            ),
            genuine=Genuine.YES,
            answers=Answers.LAST,
        ),
        Protocol(
            "ft-abcast-published",
            FtAbcast,
            "the same as published: an end that comes early is lost, and a replica blocks",
            "Louzada 2024, algorithm 3.3",
            genuine=Genuine.YES,
            answers=Answers.LAST,
            always=frozenset({FT_ABCAST_PUBLISHED}),
        ),
        Protocol(
            "df-bft",
            ReplicatedBft,
            "D&F's algorithm between groups of replicas of which some lie",
            "after Delporte-Gallet and Fauconnier 2000 and Schneider 1990",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_A_THIRD,
                Fault.WRONG_SUSPICIONS,
                Fault.BYZANTINE,
            ),
            genuine=Genuine.YES,
            answers=Answers.LAST,
            always=frozenset({"df"}),
        ),
        Protocol(
            "dcc-bft",
            ReplicatedBft,
            "Daisy Chain Cast, corrected, between groups of replicas of which some lie",
            "after Louzada 2024, section 5.2, and Schneider 1990",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_A_THIRD,
                Fault.WRONG_SUSPICIONS,
                Fault.BYZANTINE,
            ),
            genuine=Genuine.PARTLY,
            answers=Answers.LAST,
            always=frozenset({"dcc"}),
        ),
        Protocol(
            "dcc-bft-published",
            ReplicatedBft,
            "the same as published: neither safe nor live, liars or not",
            "Louzada 2024, algorithms 5.4 to 5.6",
            genuine=Genuine.PARTLY,
            answers=Answers.LAST,
            always=frozenset({"dcc-published", AS_THEY_COME}),
        ),
        Protocol(
            "byzcast",
            ByzCast,
            "groups of replicas in a tree: the lowest common ancestor orders, f + 1 equal relays",
            "after Coelho and others 2018; Louzada 2024, algorithm 3.4",
            faults=(
                Fault.CRASHES_OF_FEWER_THAN_A_THIRD,
                Fault.WRONG_SUSPICIONS,
                Fault.BYZANTINE,
            ),
            genuine=Genuine.PARTLY,
        ),
        Protocol(
            "byzcast-published",
            ByzCast,
            "the same as published: a relay that leaves one message out breaks the order",
            "Louzada 2024, algorithm 3.4",
            genuine=Genuine.PARTLY,
            always=frozenset({AS_THEY_COME}),
        ),
        Protocol(
            "vcube-best-effort",
            VCubeBestEffort,
            "broadcast through a spanning tree of a hypercube that mends itself; no order",
            "Rodrigues, Arantes and Duarte 2014",
            faults=(Fault.CRASHES_OF_RECEIVERS,),
            detector=True,
        ),
        Protocol(
            "vcube-reliable",
            VCubeReliable,
            "the same, and what a crashed process sent to some reaches all",
            "Rodrigues, Arantes and Duarte 2014",
            faults=(Fault.CRASHES,),
            detector=True,
        ),
        Protocol(
            "vcube-atomic",
            VCubeAtomic,
            "timestamps of all, told through the spanning trees of a hypercube, corrected",
            "after Ruchel and others 2021, algorithm 1",
            faults=(Fault.CRASHES,),
            detector=True,
        ),
        Protocol(
            "vcube-atomic-published",
            VCubeAtomicPublished,
            "the same as published: crashes break order and agreement",
            "Ruchel and others 2021, algorithm 1",
        ),
        Protocol(
            "vcube-atomic-majority",
            VCubeAtomicMajority,
            "the same, and a majority decides on the order if somebody is suspected",
            "after Ruchel and others 2021 and Chandra and Toueg 1996",
            faults=(Fault.CRASHES_OF_FEWER_THAN_HALF, Fault.WRONG_SUSPICIONS),
        ),
        Protocol(
            "all2all-atomic",
            All2AllAtomic,
            "timestamps of all, sent by each to each",
            "after Ruchel and others 2021, section 5",
            faults=(Fault.CRASHES,),
            detector=True,
        ),
        Protocol(
            "xamp-best-effort",
            XampBestEffort,
            "the sender repeats until enough destinations have responded",
            "Rodrigues and Veríssimo 1992",
            faults=(Fault.LOSSES, Fault.CRASHES_OF_RECEIVERS),
            genuine=Genuine.YES,
        ),
        Protocol(
            "xamp-at-least",
            XampAtLeast,
            "receivers repeat as well, so that enough get it if the sender fails",
            "Rodrigues and Veríssimo 1992",
            faults=(Fault.LOSSES, Fault.CRASHES),
            genuine=Genuine.YES,
        ),
        Protocol(
            "xamp-reliable",
            XampReliable,
            "receivers repeat as well, so that all get it if the sender fails",
            "Rodrigues and Veríssimo 1992",
            faults=(Fault.LOSSES, Fault.CRASHES),
            genuine=Genuine.YES,
        ),
        Protocol(
            "xamp-causal",
            XampCausal,
            "messages carry the history that they depend on; receivers repeat",
            "Rodrigues and Veríssimo 1992",
            faults=(Fault.LOSSES, Fault.CRASHES),
            genuine=Genuine.YES,
        ),
        Protocol(
            "xamp-atomic",
            XampAtomic,
            "two-phase accept by the sender, corrected: places instead of arrival",
            "after Rodrigues and Veríssimo 1992",
            faults=(Fault.LOSSES, Fault.CRASHES),
            detector=True,
            genuine=Genuine.YES,
        ),
        Protocol(
            "xamp-atomic-published",
            XampAtomic,
            "the same as published: over channels between pairs, orders differ",
            "Rodrigues and Veríssimo 1992",
            faults=(Fault.LOSSES, Fault.CRASHES),
            detector=True,
            genuine=Genuine.YES,
            always=frozenset({PUBLISHED}),
        ),
    )
}
