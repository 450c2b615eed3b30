"""The beats of one server: when the others are told that it is there, and what it knows of them."""

from __future__ import annotations

from typing import final

from flexgroup.membership.configuration import Configuration
from flexgroup.membership.decision import Decision
from flexgroup.membership.messages import Admitted, Ballot
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.suspicion import NEVER, FailureDetector
from flexgroup.membership.timings import Timings


@final
class Beats:
    __slots__ = ("_detector", "_missed", "_outbox", "_sent", "_timings")

    def __init__(self, timings: Timings, detector: FailureDetector, outbox: Outbox) -> None:
        self._timings = timings
        self._detector = detector
        self._outbox = outbox
        self._sent = NEVER
        self._missed: tuple[int, ...] = ()
        """Who was silent at the last beat: when somebody else is, the others are told at once."""

    def are_due(self, now: float) -> bool:
        return now - self._sent >= self._timings.beat or self._detector.silent(now) != self._missed

    def send_all(self, configuration: Configuration, promised: Ballot, now: float) -> None:
        """Tell all other servers of this configuration, which is installed."""
        detector = self._detector
        self._sent = now
        self._missed = silent = detector.silent(now)
        at = configuration.number
        for server in configuration.servers:
            number = server.number
            if number != self._outbox.number:
                beat = detector.beat_for(number, at, promised, silent, now)
                self._outbox.send(number, beat)

    def hand_over(
        self, configuration: Configuration, step: Decision | None, installed_for: float
    ) -> None:
        """Tell the servers of this configuration that do not seem to have it what it is, and what
        led to it. The contact of a newcomer does so first, but it may have failed."""
        if step is not None and installed_for >= self._timings.beat:
            for server in self._detector.never_beaten():
                self._outbox.send(server, Admitted(server, configuration, step))

    def send(self, server: int, at: int, promised: Ballot, now: float) -> None:
        """Tell one server; `at` is the configuration that is installed here."""
        detector = self._detector
        beat = detector.beat_for(server, at, promised, detector.silent(now), now)
        self._outbox.send(server, beat)
