"""What a layer tells the protected memory below it at its own process: who may write there."""

from __future__ import annotations

from typing import final

from flexgroup.core.message import Packet


@final
class Permit(Packet):
    """Only this process may write into the protected region here, from now on.

    It goes to the process itself, and no further than the layer `protected-memory`.
    """

    writer: int
