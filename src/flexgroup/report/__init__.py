"""One HTML page about an experiment or a trace set: figures, tables, verdicts, diagrams."""

from flexgroup.report.write import write_report

__all__ = ["write_report"]
