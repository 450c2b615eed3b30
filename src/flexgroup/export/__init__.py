"""Recorded runs in the formats of other tools, from the events of a trace alone."""
