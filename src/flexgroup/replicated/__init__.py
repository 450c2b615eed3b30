"""Replicated objects that are ready to use, and examples of how one writes them."""

from flexgroup.replicated.barrier import Barrier
from flexgroup.replicated.counter import Counter
from flexgroup.replicated.dictionary import Dict
from flexgroup.replicated.election import Election
from flexgroup.replicated.lock import Lock
from flexgroup.replicated.queue import Queue

__all__ = ["Barrier", "Counter", "Dict", "Election", "Lock", "Queue"]
