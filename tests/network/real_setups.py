"""Setups in which real servers once failed, as schedules and as plays of their own.

Run as a script, as root:

    python -m tests.network.real_setups overlap --seconds 60
    python -m tests.network.real_setups rejoin --times 20
    python -m tests.network.real_setups outage --seconds 1,2,5,10,30
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

from flexgroup import connect
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.virtual.campaign import STACKS
from flexgroup.virtual.checks import ORDERS
from flexgroup.virtual.schedule import Action, ClientPlan, Schedule
from flexgroup.worlds.network.faults import Faults

from .agreement import agree, servers_are
from .namespaces import Hosts, run_until_terminated
from .real_execution import PORT, RealExecution, execute_all
from .real_trial import report
from .servers import ServerProcess
from .test_failures import close, still_ordered

ORDERED = tuple(
    stack
    for stack in STACKS
    if set(ORDERS).intersection(parse_stack(stack).promises(Faults().channels()))
)


def overlap(stack: str, seconds: float, pause: float = 0.015) -> Schedule:
    """Members of A, on three of four servers, send to A and to A and B in turn, while a client
    joins and leaves another group all the time; nothing goes wrong."""
    members = [ClientPlan(f"c{server}", server, ("A", "B")) for server in range(3)]
    others = [ClientPlan("c3", 3, ("B",)), ClientPlan("visitor", 3, ())]
    actions = list(_in_turn(members, seconds, pause))
    for number in range(int(seconds / 0.02)):
        what = ("join", "leave")[number % 2]
        actions.append(Action(number * 0.02, what, ("visitor", "unrelated")))
    actions.sort(key=lambda action: action.at)
    return Schedule(1, stack, 4, (*members, *others), tuple(actions), patience=5.0)


def _in_turn(members: list[ClientPlan], seconds: float, pause: float) -> Iterator[Action]:
    for place, member in enumerate(members):
        for number in range(int(seconds / pause)):
            groups = (("A",), ("A", "B"))[(number + place) % 2]
            yield Action(number * pause, "send", (member.name, *groups))


def outage(stack: str, seconds: float, patience: float = 2.0) -> Schedule:
    """All links of three servers are cut for so long, while members send and ask for
    confirmation."""
    clients = [ClientPlan(f"c{server}", server, ("A",)) for server in range(3)]
    end = seconds + 2.0
    actions = [
        Action(at / 20, what, (client.name, "A"))
        for client in clients
        for at in range(int(20 * end))
        for what in (("send", "confirm") if at % 20 == 0 else ("send",))
    ]
    actions += [Action(1.0, "cut", pair) for pair in permutations("012", 2)]
    actions.append(Action(1.0 + seconds, "heal", ()))
    actions.sort(key=lambda action: action.at)
    return Schedule(1, stack, 3, tuple(clients), tuple(actions), patience=patience)


def lost_clients(execution: RealExecution) -> list[str]:
    """The clients that lost their connection."""
    return [client.plan.name for client in execution.clients.values() if len(client.lives) > 1]


async def rejoin(times: int, folder: Path, cut_seconds: float = 5.0) -> list[tuple[float, float]]:
    """Five servers; the last two are cut from the rest and come back, so many times.

    Returns how many seconds it took each time until all five were together again, and then until
    new members at the last two had exchanged their messages.
    """
    took = []
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(5))
        servers: list[ServerProcess] = []
        for host in range(1, 6):
            join = [option for s in servers for option in ("--join", s.address)]
            server = ServerProcess(
                f"s{host}", folder, *join, listen=f"{hosts.address(host)}:{PORT}",
                inside=hosts.inside(host),
            )  # fmt: skip
            stack.callback(server.end)
            servers.append(server)
        names = [server.name for server in servers]
        here = [await connect(s.address, name=f"old{n}") for n, s in enumerate(servers[:3])]
        groups = [await link.join("old", "RELIABLE ATOMIC") for link in here]
        for number in range(times):
            for one in (4, 5):
                for other in (1, 2, 3):
                    await asyncio.to_thread(hosts.cut, one, other)
            await asyncio.sleep(cut_seconds)
            await asyncio.to_thread(hosts.heal_all)
            began = time.monotonic()
            await agree(servers, servers_are(*names), "all are together again")
            together = time.monotonic()
            links = [await connect(s.address, name=f"new{n}") for n, s in enumerate(servers[3:])]
            await still_ordered(
                [await link.join(f"g{number}", "RELIABLE ATOMIC") for link in links]
            )
            took.append((together - began, time.monotonic() - together))
            await close(links)
            await still_ordered(groups)
        await close(here)
    return took


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setup", choices=("overlap", "rejoin", "outage"))
    parser.add_argument("--seconds", default="60")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--stacks", default=",".join(ORDERED))
    parser.add_argument("--parallel", type=int, default=2)
    options = parser.parse_args()
    seconds = [float(one) for one in options.seconds.split(",")]
    stacks = options.stacks.split(",")
    with tempfile.TemporaryDirectory() as folder:
        if options.setup == "rejoin":
            for together, exchanged in run_until_terminated(rejoin(options.times, Path(folder))):
                print(f"together after {together:.2f} s, exchanged after {exchanged:.2f} s more")
            return 0
        setup = overlap if options.setup == "overlap" else outage
        schedules = [setup(stack, one) for stack in stacks for one in seconds]
        bad = 0

        def when_done(schedule: Schedule, execution: RealExecution) -> None:
            nonlocal bad
            told = report(schedule, execution)
            bad += bool(told)
            sent = sum(len(life.sent) for c in execution.clients.values() for life in c.lives)
            first = told.partition("\n")[0][:300] or "good"
            gone = f", lost their connection: {lost}" if (lost := lost_clients(execution)) else ""
            print(
                f"{schedule.stack}, {schedule.seconds:.0f} s, {sent} messages: {first}{gone}",
                flush=True,
            )

        trial = execute_all(schedules, Path(folder), options.parallel, when_done)
        run_until_terminated(trial)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
