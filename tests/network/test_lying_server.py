"""A share of the mutated frames that `python -m tests.network.lying_server` sends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from .hostile_trial import MOST_OBJECTS_LEFT
from .lying_server import LyingServer
from .servers import LAST_RESORT


@pytest.mark.slow
def test_mutated_frames_of_a_server_and_a_client_do_no_harm(tmp_path: Path) -> None:
    seed = Random().randrange(1 << 32)
    print(f"seed {seed}")
    trial = LyingServer(tmp_path, seed)
    found = asyncio.run(asyncio.wait_for(trial.run(3_000), LAST_RESORT))
    assert found.errors == []
    assert found.frames >= 3_000
    assert found.exchanged > 0
    assert 500 < trial.refused < trial.received
    assert found.objects_after < found.objects_before + MOST_OBJECTS_LEFT
