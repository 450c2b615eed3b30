"""A counterexample as a trace set, which judges other than the explorer can read."""

from __future__ import annotations

from pathlib import Path

from flexgroup.core.codec import Codec
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.trace.recorder import NO_LABEL, Recorder, Sink
from flexgroup.trace.rows import DELIVER, MULTICAST, RECEIVE, SEND
from flexgroup.worlds.explorer.outcome import Happening
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.staged import Logged, Stage

STEP_TIME = 1_000_000
"""Nanoseconds from one step of a run to the next: any would do."""


def record(stage: Stage, codec: Codec, sink: Sink) -> None:
    """Give the log of a staged run to a sink."""
    recorder = Recorder(sink)
    for row in stage.log:
        _write(recorder, codec, row)
    recorder.flush()


def _write(recorder: Recorder, codec: Codec, row: Logged) -> None:
    time = row.time * STEP_TIME
    if row.kind == MULTICAST:
        assert row.m is not None
        recorder.multicast(row.process, row.step, time, row.m, 0)
    elif row.kind == DELIVER:
        recorder.deliver(row.process, row.step, time, row.message, row.depth, 0)
    elif row.packet is not None:
        measure = codec.measure(row.packet)
        label = recorder.label_of(row.packet) if row.packet else NO_LABEL
        log = recorder.sends if row.kind == SEND else recorder.receives
        sent = row.sent if row.kind == RECEIVE else 0
        log.add(
            row.kind, row.process, row.step, time, row.message, row.peer, label, row.depth,
            measure.header_bytes, measure.payload_bytes, sent, 0,
        )  # fmt: skip
    else:
        recorder.other(row.kind, row.process, row.step, time, row.peer, row.detail)


def write_trace(
    plan: StackPlan,
    scope: Scope,
    run: tuple[Happening, ...],
    directory: Path,
    name: str,
    force: bool = False,
) -> None:
    """Write a run into a trace set, under this name."""
    # Imported here because Arrow takes longer to load than most scopes to explore.
    from flexgroup import __version__
    from flexgroup.trace import schema
    from flexgroup.trace.writer import TraceWriter, as_json

    stage = Stage(plan, scope).perform(run)
    with TraceWriter(directory, name, force) as writer:
        record(stage, Codec(plan.layers), writer)
        writer.close(
            {
                "world": "explorer",
                "stack": plan.name,
                "options": as_json({"casts": [cast.destinations for cast in scope.casts]}),
                "processes": scope.processes,
                "clients": scope.clients,
                "network": _network(scope),
                "outcome": schema.COMPLETE if stage.quiet else schema.CUT,
                "software": f"flexgroup {__version__}",
            }
        )


def _network(scope: Scope) -> str:
    """In the words of the simulator, by which others know what the channels promise."""
    channels = "unit" if scope.fifo else "unit:fifo=no"
    lossy = scope.bounds.losses or scope.bounds.duplicates
    return f"{channels}, with losses and duplicates" if lossy else channels
