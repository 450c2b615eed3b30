"""The numeric cores of the checks: plain functions on arrays, free of files and of `History`.

Messages and processes are small integers here, and delivery rows come sorted by process and,
within a process, in the order of delivery, so that the row number is a position: of two rows
of one process, the smaller came first.
"""
