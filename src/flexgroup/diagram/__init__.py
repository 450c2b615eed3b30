"""Space-time diagrams of runs, drawn from the events of a trace alone.

`flexgroup.diagram.drawing.diagram` draws; `flexgroup.diagram.events` has the events of a run in
files and of a run in memory.
"""
