"""The tasks of a job share its pieces out among themselves, and do none of them twice."""

from __future__ import annotations

from pathlib import Path

from flexgroup.sweeps.tasks import claimed


def test_tasks_share_the_pieces_out_among_themselves(tmp_path: Path) -> None:
    one, other = (claimed(tmp_path, 5, name) for name in ("one", "other"))
    assert [next(one), next(other), next(other), next(one)] == [0, 1, 2, 3]
    assert (list(other), list(one)) == ([4], [])


def test_a_task_that_is_tried_again_does_again_what_it_had_claimed(tmp_path: Path) -> None:
    """What it had reported is lost with it."""
    died, lives = claimed(tmp_path, 6, "died"), claimed(tmp_path, 6, "lives")
    assert [next(died), next(lives), next(died)] == [0, 1, 2]
    (tmp_path / "3").touch()  # by one that died before it could write its name
    assert list(claimed(tmp_path, 6, "died", is_retry=True)) == [0, 2, 3, 4, 5]
    assert list(lives) == []
