"""What a layer tells the protected memory below it at its own process: who may write there."""

from __future__ import annotations

from typing import final

from flexgroup.core.message import Packet


@final
class Permit(Packet):
    """This process may write into the protected region here from now on, and nobody else may.

    It goes to the process itself, and no further than the layer `protected-memory`.
    """

    writer: int
