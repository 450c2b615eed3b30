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
        "Line 33 of algorithm 4.3: at a process that only forwards it, a slow message looks at "
        "all edges but the one from its source, and overtakes an earlier, fast message of that "
        "source. Here b is fast and late. The clock of c says that two messages went from 0 to 2 "
        "before it, and process 2, which has seen one, lets it pass. Then d enters at 2 in front "
        "of b, and behind c at 3: b before c at process 0, c before d at 3, d before b at 2.",
        "stack=dcc-published&processes=4&message=0,2 0,2 0,3 2,3",
        "m4.a,m5.b,m6.c,m7.d,d4.0,d5.0,d6.0,d0.1,d0.1,d1.2,d1.2,d7.2,d0.2,d2.3,d2.3",
    ),
    Trial(
        "dcc-deadlock",
        "DCC waits for ever",
        "validity",
        "Lines 12 and 23, and 24 to 27, of algorithm 4.3: at process 1, c raises the same "
        "counters as b, goes fast and overtakes b on the way to process 3. There b takes over the "
        "clock of c, and with it the position of c. Process 4 now has two messages that claim to "
        "be the second of process 0, and waits for the first for ever. Nothing is lost and nobody "
        "has crashed.",
        "stack=dcc-published&processes=5&message=0,3 0,1,4 0,1,3,4",
        "m5.a,m6.b,m7.c,d5.0,d6.0,d7.0,d0.1,d0.1,d0.1,d1.2,d1.2,d1.3,d2.3,d2.3,d3.4,d3.4",
    ),
    Trial(
        "dcc-groups",
        "DCC between groups of replicas",
        "acyclic order",
        "Algorithms 5.1 to 5.3 put groups of replicas in the place of processes, and have no "
        "longer the FIFO channels that DCC assumes: the log of the next group may have messages "
        "in another order. Message b overtakes a on its way from group 0 to group 1, which only "
        "forwards it, and knows nothing of a when c comes.",
        "stack=log dcc-cft-published&processes=3&message=0,1 0,2 1,2&replicas=1,1,1"
        "&channels=reordering",
        "m3.a,m4.b,m5.c,d3.0,d4.0,d0.1.1,d5.1,d0.1,d1.2,d1.2",
    ),
    Trial(
        "ft-abcast-block",
        "ft-abcast ends too early",
        "validity",
        "Line 22 of algorithm 3.3 waits until END of a message is received. Without replication, "
        "END answers what the process itself has sent. Here the other replica of the group has "
        "sent the message on as well, and END comes before this process delivers the message at "
        "all: it then waits for ever, without any fault.",
        "stack=leader log ft-abcast-published&processes=3&message=0,1,2 0,1&replicas=2,1",
        "m3.a,m4.b,d3.0,d4.0,d0.2,d2.0,d2.1,d0.1,d0.1,d1.2",
    ),
    Trial(
        "vcube-crash",
        "VCube loses its order with one crash",
        "acyclic order",
        "Process 0 crashes when process 1 has its timestamp of b and process 2 has not, since it "
        "learns of the crash before the packet comes (line 19). Line 39 waits for the correct "
        "processes only, line 40 takes the highest of what has come, and so the two compute "
        "different sequence numbers. One delivers a before b, the other b before a.",
        "stack=vcube-atomic-published&processes=3&message=0:0,1,2 1:0,1,2&crashes=1",
        "m0.a,m1.b,d1.0,d0.1,d0.1,d1.2,d2.1,d1.2,d2.1,x0,s1.0,s2.0,d2.1,d2.1,d1.2,d1.2",
    ),
    Trial(
        "xamp-no-medium",
        "xAMP without a common medium",
        "acyclic order",
        "Two-phase accept orders messages by their arrival at the receivers, on a network where "
        "all see frames in one order, as the paper assumes. Over channels between pairs of "
        "processes, two processes deliver two messages in opposite orders, without any fault.",
        "stack=xamp-atomic-published&processes=2&message=0:0,1 1:0,1",
        "m0.a,d0.0,d0.0,m1.b,d1.0,d1.1,d0.1,d1.0,d0.0,d0.1,d0.1,d1.1,d1.0,d1.1",
    ),
)
