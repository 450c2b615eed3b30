"""Faults between stacks, for trying protocols out: loss, duplication, reordering.

Connections between servers are reliable and ordered; what is lost here was never handed to them.
"""

from __future__ import annotations

from random import Random
from typing import final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantees, guarantees_of_channels


@final
class Faults:
    """The share of packets that are lost, sent twice, or held back behind their successor."""

    __slots__ = ("duplication", "loss", "reordering", "seed")

    def __init__(
        self, loss: float = 0.0, duplication: float = 0.0, reordering: float = 0.0, seed: int = 1
    ) -> None:
        for name, share in (
            ("loss", loss), ("duplication", duplication), ("reordering", reordering),
        ):  # fmt: skip
            if not 0 <= share < 1:
                raise UsageError(f"{name} is a share from 0 to under 1, not {share}")
        self.loss = loss
        self.duplication = duplication
        self.reordering = reordering
        self.seed = seed

    @property
    def any(self) -> bool:
        return self.loss > 0 or self.duplication > 0 or self.reordering > 0

    def shares(self) -> dict[str, float]:
        """Return the faults as the trace tells them."""
        return {
            "loss": self.loss, "duplication": self.duplication, "reordering": self.reordering,
        }  # fmt: skip

    def channels(self) -> Guarantees:
        """Return what the lowest layer can rely on."""
        return guarantees_of_channels(
            self.loss == 0 and self.duplication == 0, self.reordering == 0
        )


@final
class Channel:
    """What becomes of the packets from one process to another."""

    __slots__ = ("_faults", "_held", "_random")

    def __init__(self, faults: Faults, source: int, target: int) -> None:
        self._faults = faults
        self._random = Random(f"{faults.seed} {source} {target}")
        self._held: bytes | None = None

    def passed(self, packet: bytes) -> list[bytes]:
        """Return what goes out now that this packet is sent."""
        out: list[bytes] = []
        if self._random.random() >= self._faults.loss:
            out.append(packet)
            if self._random.random() < self._faults.duplication:
                out.append(packet)
        if self._held is not None:
            out.append(self._held)
            self._held = None
        elif out and self._random.random() < self._faults.reordering:
            self._held = out.pop()
        return out

    def released(self) -> list[bytes]:
        """Return what was held back and has waited long enough."""
        held = self._held
        self._held = None
        return [] if held is None else [held]
