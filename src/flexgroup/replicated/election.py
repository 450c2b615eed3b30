"""One of all processes leads; when it is gone, another does."""

from __future__ import annotations

from flexgroup.replica.object import Replica


class Election(Replica):
    """The leader is the member that has been one longest.

    One that has lost its server does not know at once that another one leads. What must not be
    done by two is ordered, or protected by a number as a `Lock` gives it.
    """

    @property
    def leader(self) -> str:
        return self.members[0]

    @property
    def leads(self) -> bool:
        return self.leader == self.process

    async def lead(self) -> None:
        """Wait until this process leads."""
        await self.until(lambda: self.leads)
