"""How long a page of the lab takes: a run of 200 moves rebuilt from its address, and drawn.

    python benchmarks/lab_speed.py

Skeen with four messages among eight processes, 200 random moves. The yardstick is the explorer's
own replay: the same moves performed on a bench, with nothing looked at on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from flexgroup._pure import compiled
from flexgroup.diagram.markup import Markup
from flexgroup.lab.address import Address, read_address
from flexgroup.lab.page import run_page
from flexgroup.lab.stepping import OPTIONS, Standing, stand_at
from flexgroup.worlds.explorer.schedule import stage
from flexgroup.worlds.explorer.search_setup import new_search
from flexgroup.worlds.explorer.staged import StagedRun

SCOPE = "stack=skeen&processes=8&message=" + "0,1,2,3,4,5,6,7 " * 4
MOVES = 200
MOST_MS = 50.0
"""What rebuilding the run and drawing it may take together."""

ROUNDS = 15


def long_run(seed: int) -> Address:
    """Return a run of so many random moves."""
    random = Random(seed)
    address = read_address(SCOPE)
    run = StagedRun(new_search(address.plan, address.scope, OPTIONS), address.scope)
    for _ in range(MOVES):
        run.follow(random.choice(run.possible())[0])
    return Address(address.stack, address.scope, tuple(run.steps))


def best_of(work: Callable[[], object]) -> float:
    """Return the milliseconds that some work takes, undisturbed."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1000 * min(times)


def main() -> None:
    query = long_run(1).query

    def rebuilt() -> Standing:
        return stand_at(read_address(query))

    def drawn() -> object:
        standing = rebuilt()
        return standing.performed.diagram([], "a run")

    def page() -> Markup:
        return run_page(rebuilt(), "token")

    address = read_address(query)
    replayed = best_of(lambda: stage(address.plan, address.scope, address.moves))
    rows = {
        "the explorer's own replay": replayed,
        "rebuilt from the address": best_of(rebuilt),
        "rebuilt and drawn": best_of(drawn),
        "the whole page, with verdicts and states": best_of(page),
    }
    form = "compiled" if compiled() else "pure Python"
    print(f"{MOVES} moves, an address of {len(query):,} characters, {form}")
    for name, milliseconds in rows.items():
        print(f"  {name}: {milliseconds:.1f} ms, {milliseconds / replayed:.1f} times the replay")
    together = rows["rebuilt and drawn"]
    print("as wanted" if together <= MOST_MS else f"slower than the {MOST_MS:g} ms wanted")


if __name__ == "__main__":
    main()
