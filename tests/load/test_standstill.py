"""Processes stand still, and go on whatever happens to whoever wanted that."""

from __future__ import annotations

import os
import subprocess
import sys


def test_processes_stand_still_until_the_input_ends() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as held:
        command = [sys.executable, "-m", "flexgroup.load.standstill", str(held.pid)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holding:
            assert holding.stdout is not None
            assert holding.stdout.readline() == b"ready\n"
            _, status = os.waitpid(held.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            holding.communicate()
        told, _ = held.communicate(b"goes on", timeout=60)
        assert told == b"goes on"
