"""What all virtual processes share: the order in which things happen."""

from __future__ import annotations

from flexgroup.virtual.world import World


def test_what_is_due_at_the_same_time_happens_in_the_order_in_which_it_was_asked_for() -> None:
    world = World(1)
    seen: list[str] = []

    def ask_for_more() -> None:
        seen.append("first")
        world.after(0.0, seen.append, "third")
        world.at(0.5, seen.append, "fourth, for a time that is over")
        world.at(1.5, seen.append, "sixth")
        world.at(1.0, seen.append, "fifth")

    world.at(1.0, ask_for_more)
    world.at(1.0, seen.append, "second")
    world.run(2.0)
    assert [text.split(",")[0] for text in seen] == [
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
    ]
    assert world.now == 2.0


def test_what_is_asked_for_between_two_runs_happens_in_the_next() -> None:
    world = World(1)
    seen: list[str] = []
    world.run(1.0)
    world.at(0.0, seen.append, "due")
    world.at(3.0, seen.append, "later")
    assert seen == []
    world.run(2.0)
    assert seen == ["due"]
