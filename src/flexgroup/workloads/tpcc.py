"""`tpcc`: transactions of TPC-C, multicast to the warehouses that they touch.

Section 7.2.1 of the DCC dissertation uses a load of the TPC-C kind and says only that
most of its messages have one destination, some two and few three or more. Here it is
derived from the benchmark's own rules (TPC Benchmark C, Standard Specification,
revision 5.11, February 2010), with one warehouse at each process:

- A client works for one home warehouse throughout (clauses 2.4.1.1 and 2.5.1.1).
- Mix (clause 5.2.3): at least 43% Payment and 4% each of Order-Status, Delivery and
  Stock-Level. New-Order has no minimum and is given all that remains, 45%.
- New-Order: 5 to 15 items, uniformly (clause 2.4.1.3); a remote warehouse supplies an
  item with probability 1%, any of the others alike (clause 2.4.1.5).
- Payment: the customer belongs to a remote warehouse with probability 15%, any of the
  others alike (clause 2.5.1.2).
- Order-Status, Delivery and Stock-Level concern the home warehouse alone (clauses 2.6,
  2.7 and 2.8).

The 1% of New-Orders that are rolled back (clause 2.4.1.4) are multicast like the rest:
the error shows only when the transaction is carried out.
"""

from __future__ import annotations

from random import Random

from flexgroup.workloads.workload import Workload

NEW_ORDER_SHARE = 0.45
PAYMENT_SHARE = 0.43
FEWEST_ITEMS = 5
MOST_ITEMS = 15
REMOTE_ITEM_PROBABILITY = 0.01
REMOTE_CUSTOMER_PROBABILITY = 0.15

_NEW_ORDER_OR_PAYMENT_SHARE = NEW_ORDER_SHARE + PAYMENT_SHARE
_ITEM_COUNTS = MOST_ITEMS - FEWEST_ITEMS + 1


class Tpcc(Workload):
    def __init__(self, processes: int) -> None:
        super().__init__("tpcc", processes)

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        home = client % self.processes
        if self.processes == 1:
            return (home,)
        transaction = rng.random()
        if transaction < NEW_ORDER_SHARE:
            return self._new_order(home, rng)
        if transaction < _NEW_ORDER_OR_PAYMENT_SHARE:
            return self._payment(home, rng)
        return (home,)

    def _new_order(self, home: int, rng: Random) -> tuple[int, ...]:
        random = rng.random
        warehouses = {home}
        for _ in range(FEWEST_ITEMS + int(random() * _ITEM_COUNTS)):
            if random() < REMOTE_ITEM_PROBABILITY:
                warehouses.add(self._remote_warehouse(home, rng))
        return tuple(sorted(warehouses))

    def _payment(self, home: int, rng: Random) -> tuple[int, ...]:
        if rng.random() >= REMOTE_CUSTOMER_PROBABILITY:
            return (home,)
        remote = self._remote_warehouse(home, rng)
        return (home, remote) if home < remote else (remote, home)

    def _remote_warehouse(self, home: int, rng: Random) -> int:
        other = int(rng.random() * (self.processes - 1))
        return other if other < home else other + 1
