"""Errors that say whose fault it was."""


class FlexGroupError(Exception):
    """Something a person can fix; the text says what is wrong and what to do."""


class UsageError(FlexGroupError):
    """The caller asked for something impossible: a bad option, stack or file."""


class PeerError(FlexGroupError):
    """A remote process sent something that the protocol does not allow."""
