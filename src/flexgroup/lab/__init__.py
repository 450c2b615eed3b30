"""The lab: a local page on which a protocol is run step by step, and recorded runs are looked at.

`flexgroup.lab.address` has runs as addresses, `flexgroup.lab.stepping` performs them,
`flexgroup.lab.window` has the addresses of windows on recorded runs, and `flexgroup.lab.app` serves
the pages.
"""
