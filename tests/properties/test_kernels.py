"""The kernels alone, against brute force."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.properties.kernels.causal_past import latest_in_causal_past
from flexgroup.properties.kernels.consistent_cuts import NOTHING, smallest_cut
from flexgroup.properties.kernels.disagreement import disagreements
from flexgroup.properties.kernels.grouping import (
    distinct,
    grouped,
    largest_before,
    numbered,
    runs,
)
from flexgroup.properties.kernels.head_merge import (
    cyclic_components,
    head_merge,
    latest_ancestor,
    peel,
)
from flexgroup.properties.kernels.layered_clocks import LayeredClocks
from flexgroup.properties.kernels.shortest_paths import QueueSearch, shortest_cycle
from flexgroup.properties.kernels.skipped_messages import MISSING, skips
from flexgroup.trace.history import Ints, by_pairs, in_order

from .oracle import Relation, closure, shortest_cycle_length

NODES = 7

edges = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=14)
queues = st.lists(st.lists(st.integers(0, NODES - 1), unique=True), max_size=5)
"""What each process delivered; the queue's place is the process."""

without_deadline = settings(deadline=None)


def ints(numbers: list[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)


def ends(pairs: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    return ints([one for one, _ in pairs]), ints([other for _, other in pairs])


def rows_of(lists: list[list[int]]) -> tuple[Ints, Ints]:
    """Process and message of each delivery."""
    process = [number for number, queue in enumerate(lists) for _ in queue]
    return ints(process), ints([message for queue in lists for message in queue])


def order_of(lists: list[list[int]]) -> Relation:
    return {pair for queue in lists for pair in combinations(queue, 2)}


def components_of(relation: Relation) -> set[frozenset[int]]:
    reach = closure(relation)
    return {
        frozenset(other for other in range(NODES) if {(node, other), (other, node)} <= reach)
        for node in range(NODES)
        if (node, node) in reach
    }


class TestRows:
    @without_deadline
    @given(st.lists(st.integers(0, 4)))
    def test_grouped_lists_the_rows_of_each_key(self, keys: list[int]) -> None:
        rows, starts = grouped(ints(keys), 5)
        for key in range(5):
            expected = [row for row, found in enumerate(keys) if found == key]
            assert rows[starts[key] : starts[key + 1]].tolist() == expected

    @without_deadline
    @given(st.lists(st.integers(-5, 5)))
    def test_distinct_sorts_and_drops_repetitions(self, values: list[int]) -> None:
        assert distinct(ints(values)).tolist() == sorted(set(values))

    @without_deadline
    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4))))
    def test_runs_lists_the_numbers_of_every_range(self, ranges: list[tuple[int, int]]) -> None:
        firsts, lengths = ends(ranges)
        numbers, owners = runs(firsts, firsts + lengths)
        expected = [
            (number, owner)
            for owner, (first, length) in enumerate(ranges)
            for number in range(first, first + length)
        ]
        assert list(zip(numbers.tolist(), owners.tolist(), strict=True)) == expected

    @without_deadline
    @given(st.lists(st.lists(st.integers(0, 9), min_size=1)))
    def test_largest_before_starts_anew_in_each_group(self, groups: list[list[int]]) -> None:
        group, value = rows_of(groups)
        expected = [max([-1, *of_one[:place]]) for of_one in groups for place in range(len(of_one))]
        assert largest_before(group, value).tolist() == expected


class TestGraphs:
    @without_deadline
    @given(edges)
    def test_peel_takes_exactly_what_no_cycle_precedes(self, pairs: list[tuple[int, int]]) -> None:
        order = peel(*ends(pairs), NODES).tolist()
        reach = closure(set(pairs))
        caught = {node for node in range(NODES) if (node, node) in reach}
        caught |= {other for one, other in reach if one in caught}
        assert sorted(order) == sorted(set(range(NODES)) - caught)
        place = {node: number for number, node in enumerate(order)}
        for one, other in pairs:
            if other in place:
                assert place[one] < place[other]


class TestHeadMerge:
    @without_deadline
    @given(queues)
    def test_the_order_is_everyone_s_except_inside_components(self, lists: list[list[int]]) -> None:
        merge = head_merge(*rows_of(lists), NODES)
        assert sorted(merge.order.tolist()) == list(range(NODES))
        component_of = {
            node: number for number, component in enumerate(merge.components) for node in component
        }
        place = {node: number for number, node in enumerate(merge.order.tolist())}
        for one, other in order_of(lists):
            same_component = one in component_of and component_of[one] == component_of.get(other)
            assert same_component or place[one] < place[other]

    @without_deadline
    @given(queues)
    def test_components_are_what_cycles_tie_together(self, lists: list[list[int]]) -> None:
        components = head_merge(*rows_of(lists), NODES).components
        assert {frozenset(component.tolist()) for component in components} == components_of(
            order_of(lists)
        )

    @without_deadline
    @given(queues)
    def test_members_of_a_component_stand_together(self, lists: list[list[int]]) -> None:
        merge = head_merge(*rows_of(lists), NODES)
        for component in merge.components:
            places = sorted(np.flatnonzero(np.isin(merge.order, component)).tolist())
            assert places == list(range(places[0], places[0] + len(component)))

    def test_a_long_ring_is_one_component_and_needs_no_deep_recursion(self) -> None:
        ring = np.arange(100_000)
        pairs = np.stack([ring, np.roll(ring, 1)], axis=1).ravel()
        [component] = head_merge(np.repeat(ring, 2), pairs, len(ring)).components
        assert len(component) == len(ring)

    @without_deadline
    @given(queues, st.permutations(range(NODES)))
    def test_latest_ancestor_is_the_largest_rank_of_all_before(
        self, lists: list[list[int]], rank: list[int]
    ) -> None:
        process, message = rows_of(lists)
        merge = head_merge(process, message, NODES)
        reach = closure(order_of(lists))
        expected = [
            max(rank[one] for one in range(NODES) if one == node or (one, node) in reach)
            for node in range(NODES)
        ]
        assert latest_ancestor(merge, process, message, ints(rank)).tolist() == expected


class TestPaths:
    @without_deadline
    @given(queues, st.integers(0, NODES - 1), st.integers(0, NODES - 1))
    def test_a_shortest_path_is_found_if_there_is_one(
        self, lists: list[list[int]], source: int, target: int
    ) -> None:
        process, message = rows_of(lists)
        links = QueueSearch(process, message, NODES).shortest_path(source, target)
        relation = order_of(lists)
        if links is None:
            assert (source, target) not in closure(relation)
            return
        assert all(process[one] == process[other] and one < other for one, other in links)
        nodes = [source, *(int(message[other]) for _, other in links)]
        assert [int(message[one]) for one, _ in links] == nodes[:-1]
        assert nodes[-1] == target
        reached = {source}
        for _ in links[:-1]:
            reached = {other for one, other in relation if one in reached}
            assert target not in reached

    @without_deadline
    @given(queues)
    def test_a_shortest_cycle_is_found_if_there_is_one(self, lists: list[list[int]]) -> None:
        process, message = rows_of(lists)
        components = head_merge(process, message, NODES).components
        in_component = np.isin(message, [node for component in components for node in component])
        process, message = process[in_component], message[in_component]
        if components:
            links = shortest_cycle(process, message, components, at_least=2, budget=10_000)
            assert len(links) == shortest_cycle_length(order_of(lists))
            for (_, other), (one, _) in pairwise([*links, links[0]]):
                assert message[other] == message[one]

    def test_without_budget_some_cycle_is_still_found(self) -> None:
        process, message = rows_of([[0, 1], [1, 2], [2, 3], [3, 0], [3, 1]])
        components = head_merge(process, message, NODES).components
        assert len(shortest_cycle(process, message, components, at_least=2, budget=0)) == 4
        assert len(shortest_cycle(process, message, components, at_least=2, budget=1_000)) == 3


class TestDisagreements:
    @without_deadline
    @given(queues, st.lists(st.integers(0, 1), min_size=NODES, max_size=NODES))
    def test_of_two_processes_that_disagree_the_first_two_messages_are_found(
        self, lists: list[list[int]], label: list[int]
    ) -> None:
        process, message = rows_of(lists)
        found = disagreements(process, message, ints(label))
        expected: dict[tuple[int, int], tuple[int, int]] = {}
        for p, q in combinations(range(len(lists)), 2):
            for place, one in enumerate(lists[p]):
                alike = [m for m in lists[p][place + 1 :] if label[m] == label[one]]
                following = next((m for m in alike if {m, one} <= set(lists[q])), None)
                if following is not None and (following, one) in order_of([lists[q]]):
                    expected.setdefault((p, q), (one, following))
        told = {
            (int(process[first]), int(process[other])): (int(message[first]), int(message[then]))
            for first, then, other in zip(found.first, found.then, found.other_first, strict=True)
        }
        assert len(told) == len(found.first)
        assert told == expected
        assert (found.first < found.then).all()
        assert (found.other_then < found.other_first).all()
        assert (message[found.first] == message[found.other_first]).all()
        assert (message[found.then] == message[found.other_then]).all()
        assert (ints(label)[message[found.first]] == ints(label)[message[found.then]]).all()


addressed = st.lists(st.sets(st.integers(0, 3)), min_size=NODES, max_size=NODES)


class TestCausalPast:
    @without_deadline
    @given(edges, addressed, st.data())
    def test_the_latest_of_all_predecessors_however_little_memory(
        self, pairs: list[tuple[int, int]], sets: list[set[int]], data: st.DataObject
    ) -> None:
        pairs = [(one, other) for one, other in pairs if one < other]
        copies = [
            (message, process) for message in range(NODES) for process in sorted(sets[message])
        ]
        position = ints(data.draw(st.permutations(range(len(copies)))))
        reach = closure(set(pairs))
        expected = [
            max(
                int(where)
                for (other, there), where in zip(copies, position, strict=True)
                if there == process and (other == message or (other, message) in reach)
            )
            for message, process in copies
        ]
        precedence = LayeredClocks(*ends(pairs), NODES)
        for clock_bytes in (1, 4 * NODES * 2, 1 << 20):
            latest = latest_in_causal_past(precedence, *ends(copies), position, clock_bytes)
            assert latest.tolist() == expected


class TestSkips:
    @without_deadline
    @given(addressed, st.sets(st.tuples(st.integers(0, 3), st.integers(0, NODES - 1))))
    def test_each_pair_in_which_a_process_skipped_is_found(
        self, sets: list[set[int]], losses: set[tuple[int, int]]
    ) -> None:
        """All processes deliver in one order, except what they lose."""
        copies = [
            (message, process) for message in range(NODES) for process in sorted(sets[message])
        ]
        message, process = ends(copies)
        row = ints([MISSING if (p, m) in losses else p * NODES + m for m, p in copies])
        delivered = {(p, m) for m, p in copies if (p, m) not in losses}
        expected = set()
        for p, q in combinations(range(4), 2):
            both = [m for m in range(NODES) if {p, q} <= sets[m]]
            mine = [m for m in both if (p, m) in delivered]
            theirs = [m for m in both if (q, m) in delivered]
            shorter = min(len(mine), len(theirs))
            if mine[:shorter] != theirs[:shorter]:
                expected.add((p, q))
        for look_back in (1, 256):
            found = skips(message, process, row, NODES, look_back)
            lines = zip(
                found.process.tolist(),
                found.other.tolist(),
                found.skipped.tolist(),
                found.overtaking.tolist(),
                strict=True,
            )
            pairs = set()
            for p, q, skipped, overtaking in lines:
                pairs.add((min(p, q), max(p, q)))
                assert {p, q} <= sets[skipped] & sets[overtaking]
                assert (p, skipped) in delivered
                assert (q, skipped) not in delivered
                assert (q, overtaking) in delivered
                assert (p, overtaking) not in delivered or skipped < overtaking
            assert pairs == expected


class TestCyclicComponents:
    @without_deadline
    @given(queues)
    def test_are_the_sets_that_precede_each_other(self, lists: list[list[int]]) -> None:
        process, message = rows_of(lists)
        found = cyclic_components(process, message, NODES)
        assert {frozenset(component.tolist()) for component in found} == components_of(
            order_of(lists)
        )
        assert [component.tolist() for component in found] == sorted(
            sorted(component.tolist()) for component in found
        )


class TestCuts:
    @without_deadline
    @given(queues, st.sets(st.integers(0, NODES - 1)))
    def test_hold_all_that_was_delivered_before_what_they_hold(
        self, lists: list[list[int]], inside: set[int]
    ) -> None:
        process, message = rows_of(lists)
        flags = np.isin(np.arange(NODES), list(inside))
        cut, frontier = smallest_cut(process, message, flags)
        before = {one for one, other in closure(order_of(lists)) if other in inside}
        assert set(np.flatnonzero(cut).tolist()) == inside | before
        for place, last in enumerate(frontier.tolist()):
            rows = np.flatnonzero((process == place) & cut[message])
            assert last == (rows[-1] if len(rows) else NOTHING)


class TestSorting:
    @without_deadline
    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1 << 40)), unique=True))
    def test_by_pairs_is_by_both_columns(self, pairs: list[tuple[int, int]]) -> None:
        major, minor = ends(pairs)
        assert [pairs[row] for row in by_pairs(major, minor).tolist()] == sorted(pairs)

    def test_by_pairs_of_numbers_too_large_for_one_integer(self) -> None:
        pairs = [(1 << 20, 5), (3, 1 << 62), (3, 7)]
        assert by_pairs(*ends(pairs)).tolist() == [2, 1, 0]

    def test_by_pairs_of_negative_numbers(self) -> None:
        assert by_pairs(*ends([(1, -5), (0, 3), (1, -6)])).tolist() == [1, 2, 0]

    @without_deadline
    @given(st.lists(st.sampled_from([-(1 << 62), -3, 0, 1, 2, 1 << 20, 1 << 43, 1 << 62])))
    def test_rows_with_the_same_key_stay_in_their_order(self, keys: list[int]) -> None:
        assert in_order(ints(keys)).tolist() == sorted(range(len(keys)), key=keys.__getitem__)

    @without_deadline
    @given(st.lists(st.integers(0, 9)))
    def test_numbered_names_each_row_s_value(self, values: list[int]) -> None:
        found, rows, number = numbered(ints(values))
        assert found.tolist() == sorted(set(values))
        assert [values[row] for row in rows.tolist()] == found.tolist()
        assert found[number].tolist() == values
