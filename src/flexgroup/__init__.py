"""FlexGroup: ordered messaging between processes, to run, simulate, check and measure."""

from flexgroup._pure import choose_form

choose_form()

__version__ = "0.1.0"
