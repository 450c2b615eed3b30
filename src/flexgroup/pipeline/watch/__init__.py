"""Watching a trace set while it grows: violations as they happen, with little memory.

`follower` is the state machine that follows one run, free of Spark; `stream` feeds one per run
from Structured Streaming. docs/watch.md tells the design.
"""
