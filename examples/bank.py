"""A bank in shards: transfers between shards without locks, and audits that always add up.

Each shard is a group, and its members are copies of the accounts of that shard. A transfer is
*one* message to the groups of both accounts. The stack (SKEEN) orders messages over all groups
together: the order has no cycle, so all shards can be thought of as executing one sequence of
transfers. An audit is one message to all shards; each reports its total at that place in the
sequence, so money that is under way is never missed or counted twice.

A shard that receives money must know whether the payer had it. The payer's shard tells it, and
until then the receiving shard does nothing else. That cannot end in a circle of shards waiting
for each other, because the order has no cycle either.

    flexgroup cluster --size 3 --port 7400
    python examples/bank.py --server localhost:7400
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from flexgroup import FlexGroupError, Group, Link, connect, values

STACK = "SKEEN"
OPENING_BALANCE = 100


class Branch:
    """A copy of one shard. Account n is in shard n modulo the number of shards."""

    def __init__(self, link: Link, shard: int, shards: list[Group[Any]], accounts: int) -> None:
        self._link = link
        self._shard = shard
        self._shards = shards
        self.balances = dict.fromkeys(range(shard, accounts, len(shards)), OPENING_BALANCE)
        self._todo: deque[list[Any]] = deque()
        """Delivered, and not done yet, as a verdict on an earlier one is not here."""
        self._verdicts: dict[str, bool] = {}
        """By transfer, from each copy of the payer's shard. (A bank that runs for years would
        forget those that all copies have sent.)"""
        self._paid: dict[str, asyncio.Future[bool]] = {}
        self._reports: dict[str, asyncio.Queue[tuple[int, int]]] = {}
        self._count = 0

    async def transfer(self, payer: int, payee: int, amount: int) -> bool:
        """Pay from an account of this shard to any; False: there was too little."""
        assert payer in self.balances, f"account {payer} is not in shard {self._shard}"
        key = self._new_key()
        paid: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._paid[key] = paid
        shards = {self._shard_of(payer), self._shard_of(payee)}
        groups = [self._shards[shard] for shard in sorted(shards)]
        await self._link.multicast(groups, ["transfer", key, payer, payee, amount])
        return await paid

    async def audit(self) -> int:
        """All the money of the bank, at one place in the order."""
        key = self._new_key()
        reports = self._reports[key] = asyncio.Queue()
        await self._link.multicast(self._shards, ["audit", key, self._shard])
        totals: dict[int, int] = {}
        while len(totals) < len(self._shards):
            shard, total = await reports.get()
            assert totals.setdefault(shard, total) == total, "two copies of a shard differ"
        del self._reports[key]
        return sum(totals.values())

    async def work(self) -> None:
        """Do what is delivered, in order, until the group ends."""
        async for message in self._shards[self._shard]:
            kind, key, *rest = message.body
            if kind == "verdict":
                self._verdicts[key] = rest[0]
            elif kind == "report":
                if key in self._reports:
                    self._reports[key].put_nowait((rest[0], rest[1]))
            else:
                self._todo.append(message.body)
            while self._todo and await self._do(*self._todo[0]):
                self._todo.popleft()

    async def _do(self, kind: str, key: str, *rest: int) -> bool:
        """Whether it could be done now."""
        if kind == "audit":
            total = sum(self.balances.values())
            await self._shards[rest[0]].send(["report", key, self._shard, total])
            return True
        payer, payee, amount = rest
        if payer in self.balances:
            is_covered = self.balances[payer] >= amount
            if payee not in self.balances:
                await self._shards[self._shard_of(payee)].send(["verdict", key, is_covered])
            if is_covered:
                self.balances[payer] -= amount
            if key in self._paid:
                self._paid.pop(key).set_result(is_covered)
        elif key not in self._verdicts:
            return False
        else:
            is_covered = self._verdicts[key]
        if is_covered and payee in self.balances:
            self.balances[payee] += amount
        return True

    def _shard_of(self, account: int) -> int:
        return account % len(self._shards)

    def _new_key(self) -> str:
        self._count += 1
        return f"{self._link.name}-{self._count}"


@asynccontextmanager
async def open_bank(
    addresses: list[str | None], shards: int = 3, copies: int = 2, accounts: int = 12
) -> AsyncIterator[list[Branch]]:
    """Branches for all copies of all shards, each with a link of its own."""
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        numbers = [(shard, copy) for shard in range(shards) for copy in range(copies)]
        links = [
            await stack.enter_async_context(
                connect(addresses[i % len(addresses)], name=f"branch-{shard}-{copy}")
            )
            for i, (shard, copy) in enumerate(numbers)
        ]
        own = [
            await link.join(f"shard-{shard}", STACK, open=True, codec=values)
            for link, (shard, _) in zip(links, numbers, strict=True)
        ]
        branches = []
        for link, group, (shard, _) in zip(links, own, numbers, strict=True):
            groups = [
                group if other == shard else await link.attach(f"shard-{other}", codec=values)
                for other in range(shards)
            ]
            branches.append(Branch(link, shard, groups, accounts))
        workers = [tasks.create_task(branch.work()) for branch in branches]
        yield branches
        for worker in workers:
            worker.cancel()


async def trade(branch: Branch, accounts: int, transfers: int, seed: int) -> int:
    """Transfers between accounts chosen at random; how many went through."""
    chance = random.Random(seed)
    paid = 0
    for _ in range(transfers):
        payer, payee = chance.choice(sorted(branch.balances)), chance.randrange(accounts)
        if payer != payee:
            paid += await branch.transfer(payer, payee, chance.randint(1, OPENING_BALANCE))
    return paid


async def run(addresses: list[str | None], transfers: int = 100, accounts: int = 12) -> list[int]:
    """All branches trade at once, while one audits again and again; what the audits found."""
    async with open_bank(addresses, accounts=accounts) as branches:
        trading = asyncio.gather(
            *(trade(branch, accounts, transfers, seed) for seed, branch in enumerate(branches))
        )
        totals = []
        while not trading.done():
            totals.append(await branches[0].audit())
        print(f"{sum(await trading)} transfers went through; {len(totals)} audits meanwhile")
        totals.append(await branches[-1].audit())
        return totals


def main(address: str | None = None) -> None:
    parser = argparse.ArgumentParser(description="A bank in shards, trading.")
    parser.add_argument("--server", action="append", help="host:port; may be given several times")
    parser.add_argument("--transfers", type=int, default=100, help="of each branch")
    options = parser.parse_args()
    problem: Exception | str | None = None
    try:
        totals = asyncio.run(run(options.server or [address], options.transfers))
    except* FlexGroupError as raised:
        problem = raised.exceptions[0]
    except* KeyboardInterrupt:
        problem = "interrupted"
    if problem is not None:
        sys.exit(f"bank.py: {problem}")
    print(f"every audit found the same: {set(totals)}")


if __name__ == "__main__":
    main()
