"""What `flexgroup explore` says of an exploration, to people and to programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.minimise import Minimised
from flexgroup.worlds.explorer.result import ExplorationResult, Violation, pairs_to_see
from flexgroup.worlds.explorer.scope import Scope


def script_of(plan: StackPlan, scope: Scope, found: Violation) -> str:
    """The commands with their answers, where replaying understands all of them."""
    from flexgroup.testing.script import rewrite
    from flexgroup.worlds.explorer.schedule import script

    title = f"{plan.name}: {found.name} is violated after {found.steps} steps."
    text = script(plan.name, scope, found.run, title)
    if any(happening.kind == "suspect" for happening in found.run):
        return text.replace("----\n", "")
    return rewrite(text)


@dataclass(frozen=True)
class Explored:
    """The result of an exploration with its counterexamples, each as found and minimised."""

    plan: StackPlan
    result: ExplorationResult
    counterexamples: list[tuple[Violation, Minimised]]
    unseen: list[str]
    """The orders that had to be seen sometimes, and were not."""

    def show(self, out: Path | None, saved: Path | None) -> None:
        """Print it; `out` is where counterexamples were written, `saved` a stopped search."""
        plan, result = self.plan, self.result
        channels = "fifo" if result.scope.fifo else "reordering"
        print(f"{plan.name} over {channels} channels, {result.scope.described()}")
        print(
            f"  {result.states:,} states, {result.transitions:,} transitions, "
            f"depth {result.depth}, {result.terminals:,} ends, {result.complete:,} of them with "
            f"everything delivered"
        )
        memory = result.memory / 2**20
        print(f"  {result.seconds:.2f} s, {memory:.1f} MB; {self._both_orders()}")
        for note in result.notes:
            print(f"  {note}")
        for text in self.unseen:
            print(f"sometimes {text}: never seen")
        for found, minimised in self.counterexamples:
            self._show_counterexample(found, minimised)
        if out is not None and self.counterexamples:
            print(f"script, diagram and trace written to {out}")
        if result.stopped_at and saved:
            print(f"saved; go on with: flexgroup explore --resume {saved}")
        print(result.last_line())

    def _show_counterexample(self, found: Violation, minimised: Minimised) -> None:
        names = [other.name for other in self.result.violations if other.run == found.run]
        deadlock = ", and nothing can happen any more: deadlock" if "validity" in names else ""
        print(f"{', '.join(names)}: violated after {found.steps} steps{deadlock}")
        if minimised.scope != self.result.scope:
            print(f"  smaller: {minimised.scope.described()}")
        proved = " and no fewer" if minimised.violation.shortest else ""
        print(f"  in {minimised.violation.steps} steps{proved}; `flexgroup replay` runs this:\n")
        print(script_of(self.plan, minimised.scope, minimised.violation))

    def _both_orders(self) -> str:
        """Say whether messages that meet really raced, against success by default."""
        pairs = pairs_to_see(self.result.scope)
        seen = sum(1 for pair in pairs if pair in self.result.seen_orders)
        return f"of {len(pairs)} orders of two messages that meet, {seen} were seen"

    def to_json(self) -> dict[str, object]:
        result = self.result
        return {
            "stack": self.plan.name,
            "processes": result.scope.processes,
            "messages": [list(cast.destinations) for cast in result.scope.casts],
            "states": result.states,
            "transitions": result.transitions,
            "depth": result.depth,
            "frontier": result.frontier,
            "ends": result.terminals,
            "complete_ends": result.complete,
            "exhausted": result.exhausted,
            "stopped_at": result.stopped_at or None,
            "notes": list(result.notes),
            "seconds": round(result.seconds, 3),
            "bytes": result.memory,
            "never_seen": self.unseen,
            "violations": [self._violation(*pair) for pair in self.counterexamples],
            "last_line": result.last_line(),
        }

    def _violation(self, found: Violation, minimised: Minimised) -> dict[str, object]:
        return {
            "property": found.name,
            "also": [
                other.name
                for other in self.result.violations
                if other.run == found.run and other.name != found.name
            ],
            "steps": found.steps,
            "smallest": {
                "processes": minimised.scope.processes,
                "messages": [list(cast.destinations) for cast in minimised.scope.casts],
                "steps": minimised.violation.steps,
                "shortest": minimised.violation.shortest,
            },
            "script": script_of(self.plan, minimised.scope, minimised.violation),
        }
