"""The documentation as a site: the Markdown of a source tree as pages that need no server.

`pages` turns one page into markup, `build` writes them all, with figures, gallery and search.
"""
