"""Traces of any size on Spark: verified, measured, and watched while they grow.

`spark` starts it, `reading` opens trace sets, `verify`, `measure` and `watch` do the work, and
`result_tables` writes what they found.
"""
