"""The published algorithms on trial, each with a run to step through and the finding in words."""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.lab.address import Address, read_address


@dataclass(frozen=True)
class Trial:
    """A finding as a run."""

    name: str
    """What the trial is called in an address."""
    heading: str
    breaks: str
    """The property that the run breaks at its end."""
    finding: str
    """The words that stand beside every step of the run."""
    scope: str
    run: str

    @property
    def address(self) -> Address:
        """The run at its beginning, with all of it ahead."""
        return read_address(f"{self.scope}&ahead={self.run}&trial={self.name}")


TRIALS = (
    Trial(
        "dcc-cycle",
        "DCC delivers in a circle",
        "acyclic order",
        "As published, DCC marks a message slow when another may have overtaken it on the way, "
        "and lets it be fast again further on. Here b overtakes a message that is still below: "
        "b comes before c at process 0, c before d at 3, and d before b at 2. The corrected dcc "
        "forbids it: a message that came slow stays slow.",
        "stack=dcc-published&processes=4&message=0,2 0,2 0,3 2,3",
        "m4.a,m5.b,m6.c,m7.d,d4.0,d5.0,d6.0,d0.1,d0.1,d1.2,d1.2,d7.2,d0.2,d2.3,d2.3",
    ),
    Trial(
        "dcc-deadlock",
        "DCC waits for ever",
        "validity",
        "Three messages, no crash and nothing lost: each process has done what it can, and the "
        "last destination still waits for a message that nobody will let go. Nothing can happen "
        "any more although not everything is delivered.",
        "stack=dcc-published&processes=5&message=0,3 0,1,4 0,1,3,4",
        "m5.a,m6.b,m7.c,d5.0,d6.0,d7.0,d0.1,d0.1,d0.1,d1.2,d1.2,d1.3,d2.3,d2.3,d3.4,d3.4",
    ),
    Trial(
        "dcc-groups",
        "DCC between groups of replicas",
        "acyclic order",
        "Between groups, packets can overtake each other even though channels within a group "
        "keep their order. Seven steps are enough for a circle of three messages.",
        "stack=log dcc-cft-published&processes=3&message=0,1 0,2 1,2&replicas=1,1,1"
        "&channels=reordering",
        "m3.a,m4.b,m5.c,d3.0,d4.0,d0.1.1,d5.1,d0.1,d1.2,d1.2",
    ),
    Trial(
        "ft-abcast-block",
        "ft-abcast ends too early",
        "validity",
        "A leader takes the end of a message for the word that all groups have it. A replica of "
        "its own group has not, and waits for ever, without any fault.",
        "stack=leader log ft-abcast-published&processes=3&message=0,1,2 0,1&replicas=2,1",
        "m3.a,m4.b,d3.0,d4.0,d0.2,d2.0,d2.1,d0.1,d0.1,d1.2",
    ),
    Trial(
        "vcube-crash",
        "VCube loses its order with one crash",
        "acyclic order",
        "Process 0 crashes when process 1 has its timestamp of b and process 2 has not, since it "
        "learns of the crash before the packet comes. Both then wait for correct processes only "
        "(line 39) and take the highest timestamp that they have (line 40), which is not the "
        "same. One delivers a before b, the other b before a.",
        "stack=vcube-atomic-published&processes=3&message=0:0,1,2 1:0,1,2&crashes=1&suspicions=2",
        "m0.a,m1.b,d1.0,d0.1,d0.1,d1.2,d2.1,d1.2,d2.1,x0,s1.0,s2.0,d2.1,d2.1,d1.2,d1.2",
    ),
    Trial(
        "xamp-no-medium",
        "xAMP without a common medium",
        "acyclic order",
        "Two-phase accept orders messages by their arrival, which is the same everywhere on the "
        "network that its paper assumes. Over channels between pairs of processes it is not: two "
        "processes deliver two messages in opposite orders, without any fault.",
        "stack=xamp-atomic-published&processes=2&message=0:0,1 1:0,1",
        "m0.a,d0.0,d0.0,m1.b,d1.0,d1.1,d0.1,d1.0,d0.0,d0.1,d0.1,d1.1,d1.0,d1.1",
    ),
)
