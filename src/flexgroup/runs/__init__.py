"""Runs of the simulator and searches of the explorer with all that is to be said of them.

The commands `flexgroup simulate` and `flexgroup explore` print it; in notebooks and scripts,
`flexgroup.simulate` and `flexgroup.explore` return it.
"""
