"""The lab: a local page on which a protocol is run step by step.

`flexgroup.lab.address` has runs as addresses, `flexgroup.lab.performed` performs them, and
`flexgroup.lab.app` serves the pages.
"""
