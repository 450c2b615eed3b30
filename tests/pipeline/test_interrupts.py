"""Ctrl-C while Spark starts leaves no Java behind: it waits until there is something to end."""

from __future__ import annotations

import signal

import pytest

from flexgroup.pipeline.spark.session import interrupted_later


def start_interrupted(times: int, done: list[str]) -> None:
    with interrupted_later():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        done.append("started")


def test_an_interrupt_has_effect_when_the_start_is_over() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        start_interrupted(1, done)
    assert done == ["started"]


def test_a_second_interrupt_has_effect_at_once() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        start_interrupted(2, done)
    assert done == []


def test_interrupts_are_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupted_later():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_was_put_in_place_meanwhile_stays() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupted_later():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
