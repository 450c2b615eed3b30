"""A trial that is asked to end leaves nothing behind: no server, and none of their hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from .namespaces import TERMINATED, needs_namespaces
from .servers import LAST_RESORT

pytestmark = needs_namespaces


def hosts_of(trial: int) -> list[str]:
    told = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    mine = f"fg{trial % 100_000}x"
    return [line.split()[0] for line in told.stdout.splitlines() if line.startswith(mine)]


def processes_at(folder: Path) -> list[int]:
    """Those that were told of this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in told and b"flexgroup.cli.main" in told:
            found.append(int(process.name))
    return found


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_trial_that_is_asked_to_end_removes_its_servers_and_hosts(
    sent: signal.Signals, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.network.replica_trial", "--schedules", "1"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    trial = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    assert trial.stderr is not None
    try:
        while len(processes_at(tmp_path)) < 3:
            assert trial.poll() is None, trial.stderr.read()
            with suppress(subprocess.TimeoutExpired):
                trial.wait(0.05)
        assert len(hosts_of(trial.pid)) == 9
        trial.send_signal(sent)
        code = trial.wait(LAST_RESORT)
    finally:
        trial.kill()
        trial.stderr.close()
    assert code == (TERMINATED if sent == signal.SIGTERM else -signal.SIGINT)
    assert hosts_of(trial.pid) == []
    assert processes_at(tmp_path) == []
