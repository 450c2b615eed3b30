"""FlexGroup: ordered messaging between processes, to run, simulate, check and measure."""

__version__ = "0.1.0"
