"""What a run achieved and what it cost: each metric once, from named sums over the run's events.

`catalogue` is the table of the metrics: name, unit, meaning, formula, heading. `sums` names what
the formulas rest on. The sums are counted in two ways that come to the same: with numpy for a run
in memory (`counting`), and with Spark for runs of any length
(`flexgroup.pipeline.measure`). `tables` computes from them a row for each run, and a row for each
set of repetitions.
"""
