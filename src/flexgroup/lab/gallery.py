"""Runs to step through, with words beside each step: published algorithms on trial, and figures of
papers."""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.lab.address import Address, read_address


@dataclass(frozen=True)
class GuidedRun:
    """A finding, or a figure, as a run."""

    name: str
    """What the run is called in an address."""
    heading: str
    breaks: str
    """The property that the run breaks at its end; empty, if it breaks none."""
    words: str
    """What stands beside every step of the run."""
    scope: str
    run: str

    @property
    def address(self) -> Address:
        """The run at its beginning, with all of it ahead."""
        return read_address(f"{self.scope}&ahead={self.run}&guided={self.name}")


TRIALS = (
    GuidedRun(
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
    GuidedRun(
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
    GuidedRun(
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
    GuidedRun(
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
    GuidedRun(
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
    GuidedRun(
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

FIGURES = (
    GuidedRun(
        "skeen-race",
        "Skeen: two messages race",
        "",
        "a is first at process 0, b is first at process 1, so each gets the timestamp 1 at "
        "one of them and 2 at the other. The final timestamps are (2,1) for a and (2,0) for "
        "b: both processes deliver b, then a.",
        "stack=skeen&processes=2&message=0,1 0,1",
        "m2.a,m3.b,d2.0,d3.0,d3.1,d2.1,d0.0,d1.0,d0.0,d1.0,d0.1,d0.1,d1.1,d1.1",
    ),
    GuidedRun(
        "df-convoy",
        "D&F: the convoy effect, figure 3.2",
        "",
        "Four concurrent messages to overlapping sets of five processes. d has nothing in "
        "common with a, and waits for it all the same: d stands behind c at process 1, which "
        "waits for the END of c; c stands behind b at process 2, and b behind a at process 3. "
        "When a comes to its end, the convoy dissolves one END at a time.",
        "stack=df&processes=5&message=3,4 2,3 1,2 0,1",
        "m5.a,m6.b,m7.c,m8.d,d5.3,d6.2,d7.1,d8.0,d2.3,d1.2,d0.1,d3.4,d4.3,d3.2,d2.1,d1.0",
    ),
    GuidedRun(
        "dcc-pipeline",
        "DCC: nobody waits for an END, figure 4.1 (a)",
        "",
        "Process 1 passes a on, and when b comes from below it delivers and passes on b at "
        "once, though a has reached no other destination yet. (p1 to p4 of the figure are "
        "processes 0 to 3.)",
        "stack=dcc&processes=4&message=1,2,3 0,1,3",
        "m4.a,m5.b,d4.1,d5.0,d0.1,d1.2,d1.2,d2.3,d2.3",
    ),
    GuidedRun(
        "dcc-clocks",
        "DCC: clocks prevent a cycle, figure 4.1 (b) and (c)",
        "",
        "b and c are the figure's m1 and m2. Process 1 has b before c, but c is at process 3 "
        "before b, which travels alone since a made it fast. When c passes process 1 it takes "
        "along that two messages went from there to process 3, and process 3 keeps c until b, "
        "the second of them, has come.",
        "stack=dcc&processes=4&message=1,3 1,3 0,1,3",
        "m4.a,m5.b,m6.c,d4.1,d5.1,d1.2,d2.3,d6.0,d0.1,d1.2,d2.3,d1.3",
    ),
    GuidedRun(
        "dcc-detour",
        "DCC: a message visits whom it is not for, figure 4.1 (f)",
        "",
        "Process 2 has b before c, process 1 c before d, process 0 d before e; b and e meet "
        "at process 4 only. e visits processes 1, 2 and 3 on its way, hears of b at process "
        "2, and waits for it at process 4. (a goes before b to make it fast.)",
        "stack=dcc&processes=5&message=2,4 2,4 1,2 0,1 0,4",
        "m5.a,m6.b,m7.c,m8.d,m9.e,d5.2,d6.2,d2.3,d3.4,d7.1,d1.2,d8.0,d0.1,d9.0,d0.1,d1.2,d2.3"
        ",d3.4,d2.4",
    ),
    GuidedRun(
        "causal-vectors",
        "Causal order: who can deliver, figure 4.4",
        "",
        "Processes A to D are 0 to 3. The fifth message of B, e, reaches A but not C; the "
        "first of A, f, reaches B and C but not D; then A multicasts g. B delivers g: it has "
        "everything that A had. C cannot, it lacks e; D cannot, it still expects f.",
        "stack=causal&processes=4&message=1:0,1,2,3 1:0,1,2,3 1:0,1,2,3 1:0,1,2,3 1:0,1,2,3 0"
        ":0,1,2,3 0:0,1,2,3&channels=reordering",
        "m1.a,m1.b,m1.c,m1.d,d1.0,d1.0,d1.0,d1.0,d1.2,d1.2,d1.2,d1.2,d1.3,d1.3,d1.3,d1.3,m1.e"
        ",m0.f,d1.0,d1.3,d0.1,d0.2,m0.g,d0.1,d0.2,d0.3.1,d1.2,d0.3",
    ),
    GuidedRun(
        "causal-matrix",
        "Causal order with a matrix, figure 3",
        "",
        "Figure 3 of Raynal, Schiper and Toueg. Site 3, which is process 2 here, sends a to "
        "site 1, b to site 2 and c to site 1; d goes from site 2 to site 1, after b. When d "
        "comes, site 1 has delivered two messages of site 3, more than d asks for: c was sent "
        "at the same time as d, as far as anybody can tell.",
        "stack=causal-rst&processes=3&message=2:0 2:1 2:0 1:0&channels=reordering",
        "m2.a,m2.b,m2.c,d2.1,m1.d,d2.0,d2.0,d1.0",
    ),
    GuidedRun(
        "paxos-takeover",
        "Paxos: another leader",
        "",
        "The leader crashes when one follower has accepted a. Process 1 leads from then on, "
        "hears of a from 2, and proposes it again; 2 submits b again.",
        "stack=leader paxos&processes=3&replicas=3&message=0:0,1,2 2:0,1,2&crashes=1",
        "m0.a,m2.b,d0.2,x0,s1.0,d1.2,d2.1,d2.1,d0.1,d1.2,d1.2,d2.1,d2.1,d1.2,d1.2,s2.0",
    ),
)

BY_NAME = {run.name: run for run in (*TRIALS, *FIGURES)}
