"""The networks by name: `unit`, `lan`, `wan`, `neko` and `machine`, each with options.

A network is written as its name, then options after a colon:
`lan:delay=50us,loss=0.01,fifo=no`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import log
from typing import Any

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantees, guarantees_of_channels
from flexgroup.worlds.simulator.network import JITTER_VALUES, Network
from flexgroup.worlds.simulator.regions import REGIONS, one_way_ns

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True)
class NetworkOptions:
    """Times in nanoseconds; `byte` and `stored` in picoseconds, `jitter` the mean of an
    exponential; `together` the number of consecutive processes in a region. What follows it counts
    where processes share processors."""

    delay: int
    jitter: int = 0
    send: int = 0
    receive: int = 0
    byte: int = 0
    sync: int = 0
    stored: int = 0
    seal: int = 0
    check: int = 0
    fifo: bool = True
    loss: float = 0.0
    duplication: float = 0.0
    contention: bool = True
    together: int = 1
    cores: int = 0
    read: int = 0
    write: int = 0
    cast: int = 0
    deliver: int = 0
    client: int = 0
    frame: int = 0
    background: float = 0.0


# A prototype on the Java virtual machine, over TCP within one rack, of the kind that the DCC
# dissertation measured. A packet costs a system call, a wake-up and a hand-over at either end;
# a byte stands for encoding, decoding and merging clocks, which Java does slowly. The reasons
# for each figure are in docs/simulator.md; docs/dcc-results.md shows what depends on them.
_LAN = NetworkOptions(delay=40_000, jitter=10_000, send=15_000, receive=15_000, byte=100_000)

_DEFAULTS = {
    # Every link takes one delay; handling costs nothing.
    "unit": NetworkOptions(delay=1_000_000),
    # One switch: short delays with jitter, a cost per packet and per byte.
    "lan": _LAN,
    # Processes spread over cloud regions with measured latencies.
    "wan": replace(_LAN, delay=0, jitter=500_000),
    # The costs of the Neko simulator.
    "neko": NetworkOptions(delay=800_000, send=100_000, receive=100_000),
    # Servers and clients as processes of one machine; `flexgroup calibrate` measures its figures.
    "machine": NetworkOptions(
        delay=20_000,
        send=20_000,
        receive=20_000,
        byte=50_000,
        cores=2,
        read=20_000,
        write=20_000,
        cast=20_000,
        deliver=20_000,
        client=20_000,
        frame=20_000,
    ),
}

SHARED = ("cores", "read", "write", "cast", "deliver", "client", "frame", "background")
"""The options of a machine whose processes share processors."""


MOST_BACKGROUND = 0.9
"""The share of a machine that may go to anything but messages."""

Links = dict[tuple[int, int], int]
"""The delays, in nanoseconds, of links from one process or client to another."""


def parse_network(spec: str, links: Links | None = None) -> Network:
    """The network that a spec such as `lan:loss=0.01,fifo=no` stands for, with these links."""
    name, _, rest = spec.partition(":")
    options = _DEFAULTS.get(name)
    if options is None:
        raise UsageError(f"unknown network '{name}'; choose from: {', '.join(_DEFAULTS)}")
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key not in NetworkOptions.__dataclass_fields__:
            known = ", ".join(NetworkOptions.__dataclass_fields__)
            raise UsageError(f"network '{spec}': '{part}' is not option=value; options: {known}")
        chosen: dict[str, Any] = {key: _value(spec, key, value)}
        options = replace(options, **chosen)
    if name != "wan" and not any((options.delay, options.jitter, options.send, options.receive)):
        raise UsageError(f"network '{spec}': nothing takes any time; give it a delay, as delay=1ms")
    if name != "wan" and options.together != 1:
        raise UsageError(f"network '{spec}': only wan has regions in which processes are together")
    if name != "machine" and any(getattr(options, key) for key in SHARED):
        raise UsageError(
            f"network '{spec}': only processes of a machine share processors; write machine:..."
        )
    if name == "machine" and not (options.cores and options.contention):
        raise UsageError(f"network '{spec}': a machine has processors, and they can be busy")
    return Network(
        name=spec,
        region_delays=_region_delays(name, options.delay),
        jitter=_jitter(options.jitter),
        fifo=options.fifo,
        send_cost=options.send,
        receive_cost=options.receive,
        byte_cost_ps=options.byte,
        sync_cost=options.sync,
        stored_byte_cost_ps=options.stored,
        loss=options.loss,
        duplication=options.duplication,
        contention=options.contention,
        links=links or {},
        together=options.together,
        seal_cost=options.seal,
        check_cost=options.check,
        cores=options.cores,
        read_cost=options.read,
        write_cost=options.write,
        cast_cost=options.cast,
        deliver_cost=options.deliver,
        client_cost=options.client,
        client_frame_cost=options.frame,
        background=options.background,
    )


def parse_links(text: str, total: int) -> Links:
    """The links of a text such as `6:0=1us 0:1=2ms`; `total` counts processes and clients."""
    links: Links = {}
    for word in text.split():
        match = re.fullmatch(r"(\d+):(\d+)=(.+)", word)
        if match is None:
            raise UsageError(f"--link {word}: write FROM:TO=DELAY, for example 6:0=1us")
        link = (int(match[1]), int(match[2]))
        if link[0] == link[1] or max(link) >= total:
            raise UsageError(
                f"--link {word}: a link leads from one of 0 to {total - 1} to another, clients "
                "being numbered after the processes"
            )
        links[link] = parse_time(match[3])
        if not links[link]:
            raise UsageError(f"--link {word}: a packet takes some time; give a delay above 0")
    return links


def channel_guarantees(network: Network, drops: bool = False) -> Guarantees:
    """What the channels of this network give to the lowest layer."""
    is_reliable = network.loss == 0 and network.duplication == 0 and not drops
    return guarantees_of_channels(is_reliable, network.fifo)


def parse_time(text: str) -> int:
    """Nanoseconds of a text such as `50us`, `1.5ms` or `2s`; a bare number is seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)?", text)
    if match is None:
        raise UsageError(f"'{text}' is not a time; write for example 50us, 1.5ms or 2s")
    return round(float(match[1]) * _UNITS[match[2] or "s"])


def _value(spec: str, key: str, value: str) -> int | bool | float:
    if key in ("fifo", "contention"):
        if value not in ("yes", "no"):
            raise UsageError(f"network '{spec}': {key} is yes or no, not '{value}'")
        return value == "yes"
    if key in ("together", "cores"):
        what = "processes" if key == "together" else "processors"
        if not re.fullmatch(r"[1-9]\d{0,3}", value):
            raise UsageError(f"network '{spec}': {key} is a number of {what}, not '{value}'")
        return int(value)
    if key in ("loss", "duplication", "background"):
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if not 0 <= share <= (1 if key != "background" else MOST_BACKGROUND):
            raise UsageError(f"network '{spec}': {key} is a share from 0 to 1, not '{value}'")
        return share
    return parse_time(value) * (1000 if key in ("byte", "stored") else 1)


def _region_delays(name: str, delay: int) -> list[list[int]]:
    if name != "wan":
        return [[delay]]
    regions = range(len(REGIONS))
    return [[one_way_ns(a, b) + delay for b in regions] for a in regions]


def _jitter(mean: int) -> list[int]:
    """The quantiles of an exponential distribution, all equally likely."""
    if mean == 0:
        return []
    return [
        round(-mean * log(1 - (number + 0.5) / JITTER_VALUES)) for number in range(JITTER_VALUES)
    ]
