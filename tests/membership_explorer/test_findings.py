"""Schedules that the explorer has found, and that broke something before it was mended."""

from __future__ import annotations

from flexgroup.membership_explorer.script import parse_script, verdict


def test_a_server_that_was_excluded_while_it_was_heard_does_not_go_on_when_the_others_die() -> None:
    """The leader of two waits for an answer, in vain, and goes on alone, then it dies. The other
    one was heard lately, and told so; it went on alone as well."""
    scope, run = parse_script(
        """
        servers 2
        stack best-effort
        group A 1,2
        plan a join 1 A
        bounds crashes=1 cuts=1 breaks=0 delays=1 ticks=10

        act a
        deliver 1->2  # Prepare
        cut 1 2
        time
        time
        heal 1 2
        deliver 2->1  # Propose
        time
        time          # 1 installs configuration 2 of 1
        crash 1
        notice 2 1    # 2 installed configuration 2 of 2
        """
    )
    assert verdict(scope, run) == []


def test_what_a_server_had_delivered_that_fails_precedes_what_it_sent_then() -> None:
    """Server 1 lacks both, and nobody who goes on has delivered the first one."""
    scope, run = parse_script(
        """
        servers 3
        stack causal-rst
        group A 1,3
        group B 1,2,3
        plan a cast 2 A
        plan b cast 3 B
        bounds crashes=1 cuts=0 breaks=0 delays=0 ticks=8

        act a         # 2 multicasts a
        deliver 2->3  # packets in domain 1; 3 delivers a
        act b         # 3 multicasts b; 3 delivers b
        deliver 3->2  # packets in domain 1; 2 delivers b
        crash 3
        notice 1 3
        deliver 1->2  # Prepare
        deliver 2->1  # packets in domain 1
        deliver 2->1  # Prepared
        deliver 1->2  # Accept
        deliver 2->1  # Accepted; 1 delivered b, and then a
        """
    )
    assert verdict(scope, run) == []
