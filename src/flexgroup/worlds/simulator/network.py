"""Networks: how long packets travel, what handling them costs, and what goes wrong.

Times are integers, in nanoseconds. Every process is one server: it handles one packet at
a time, in order of arrival, and spends a cost per packet and per byte on receiving and on
sending, and on writing to stable storage, so queues build up and saturation shows; without
contention, each packet is handled as if it were alone. A packet to oneself costs and takes
nothing. Clients are outside the system and cost nothing.
"""

from __future__ import annotations

from random import Random
from typing import Final

from mypy_extensions import mypyc_attr

from flexgroup.core.message import Packet

JITTER_BITS: Final = 10
JITTER_VALUES: Final = 1024
DIGITS_AT_ONCE: Final = 1 << 50


@mypyc_attr(allow_interpreted_subclasses=True)
class Network:
    """Delays between regions plus a random jitter, costs, and unreliability."""

    def __init__(
        self,
        *,
        name: str,
        region_delays: list[list[int]],
        jitter: list[int],
        fifo: bool,
        send_cost: int,
        receive_cost: int,
        byte_cost_ps: int,
        sync_cost: int,
        stored_byte_cost_ps: int,
        loss: float,
        duplication: float,
        contention: bool,
        links: dict[tuple[int, int], int],
        together: int = 1,
        seal_cost: int = 0,
        check_cost: int = 0,
        cores: int = 0,
        read_cost: int = 0,
        write_cost: int = 0,
        cast_cost: int = 0,
        deliver_cost: int = 0,
        client_cost: int = 0,
        client_frame_cost: int = 0,
        background: float = 0.0,
    ) -> None:
        self.name = name
        self.regions = len(region_delays)
        self.region_delays = region_delays
        self.jitter = jitter
        """Equally likely additions to a delay: JITTER_VALUES of them, or none at all."""
        self.fifo = fifo
        self.send_cost = send_cost
        self.receive_cost = receive_cost
        self.byte_cost_ps = byte_cost_ps
        """Picoseconds for each byte, on sending and again on receiving."""
        self.sync_cost = sync_cost
        """What it costs to make durable what is stored together."""
        self.stored_byte_cost_ps = stored_byte_cost_ps
        """Picoseconds for each byte that is stored."""
        self.loss = loss
        self.duplication = duplication
        self.contention = contention
        """Whether what a process does waits for what it did before."""
        self.links = links
        """Exact delays of links that have one of their own, from a process or client to another."""
        self.together = together
        """How many consecutive processes, and how many clients after them, share a region."""
        self.seal_cost = seal_cost
        self.check_cost = check_cost
        """What it costs to make a seal, and to check one."""
        self.cores = cores
        """How many processors all processes share; 0: each has one of its own."""
        self.read_cost = read_cost
        self.write_cost = write_cost
        """What it costs, where processors are shared, to read and to write a frame: all that one
        process sends to another in a round."""
        self.cast_cost = cast_cost
        self.deliver_cost = deliver_cost
        """What it costs a server to take a message of a client, and to hand one to a member."""
        self.client_cost = client_cost
        """What it costs the process of the clients to send a message, or to be given one."""
        self.client_frame_cost = client_frame_cost
        """What it costs that process to read a frame, or to write one."""
        self.background = background
        """The share of the processors that goes to what is not about messages."""
        self._only_delay = region_delays[0][0]
        self._digits = 0
        """Random numbers below JITTER_VALUES, in base JITTER_VALUES, above a leading 1."""

    def delay(self, source: int, target: int, packet: Packet | None, random: Random) -> int:
        """How long this packet (None: an answer to a client) travels."""
        if self.links:
            own = self.links.get((source, target), -1)
            if own >= 0:
                return own
        if self.regions == 1:
            base = self._only_delay
        else:
            here, there = source // self.together, target // self.together
            base = self.region_delays[here % self.regions][there % self.regions]
        if not self.jitter:
            return base
        # One random number serves five packets: drawing it costs as much as all the rest.
        digits = self._digits
        if digits <= 1:
            digits = DIGITS_AT_ONCE + int(random.random() * DIGITS_AT_ONCE)
        self._digits = digits >> JITTER_BITS
        return base + self.jitter[digits & (JITTER_VALUES - 1)]
