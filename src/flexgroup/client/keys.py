"""A check of the keys of dicts in MessagePack, before a value is read.

Python's hashes of texts and bytes cannot be foreseen, those of integers and tuples can. Of large
integers and of arrays, which become tuples, as many as one likes have the same hash; a dict of
such keys takes time that grows with the square of their number.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from flexgroup.core.errors import PeerError

SINGLE: Final = re.compile(rb"[\x00-\x7f\xc0\xc2\xc3\xe0-\xff]+")
"""Small integers, None and booleans, which are one byte each."""

TIMESTAMP: Final = 0xFF
"""The code of the extension for points in time."""

FIXED: Final = {
    0xC0: 1, 0xC1: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9,
    0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18,
}  # fmt: skip
"""How many bytes a value has, by its first byte."""

LENGTHS: Final = {
    0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4,
}  # fmt: skip
"""How many bytes the length of a value has, by its first byte."""

EXTENSIONS: Final = frozenset((0xC7, 0xC8, 0xC9, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8))


def check_keys(data: bytes, deepest: int) -> None:
    """Refuse keys whose hash many others could have, and values that are too deep to look into.

    Truncated values are not noticed here.
    """
    with suppress(IndexError):
        _scan(data, deepest)


def _scan(data: bytes, deepest: int) -> None:
    outer: list[tuple[int, bool]] = []
    left, in_dict, at = 1, False, 0
    while True:
        while left == 0:
            if not outer:
                return
            left, in_dict = outer.pop()
        if not in_dict and (run := SINGLE.match(data, at, at + left)):
            left -= run.end() - at
            at = run.end()
            continue
        first = data[at]
        is_key = in_dict and left % 2 == 0
        left -= 1
        items = _items(data, at, first)
        if items is None:
            size, code = _extent(data, at, first)
            if is_key and first in EXTENSIONS and code != TIMESTAMP:
                raise PeerError("a dict with a key that is neither a text nor a small number")
            at += size
            continue
        if is_key:
            raise PeerError("a dict with a key that is itself a list or a dict")
        outer.append((left, in_dict))
        if len(outer) > deepest:
            raise PeerError(f"the value is nested deeper than {deepest} containers")
        count, head, in_dict = items
        left = 2 * count if in_dict else count
        at += head


def _items(data: bytes, at: int, first: int) -> tuple[int, int, bool] | None:
    """Return the items of a list or dict, the bytes of its head, and whether it is a dict."""
    if 0x80 <= first <= 0x9F:
        return first & 15, 1, first < 0x90
    if 0xDC <= first <= 0xDF:
        width = 2 if first in (0xDC, 0xDE) else 4
        count = int.from_bytes(data[at + 1 : at + 1 + width], "big")
        return count, 1 + width, first >= 0xDE
    return None


def _extent(data: bytes, at: int, first: int) -> tuple[int, int]:
    """Return how many bytes a value has, and the code of an extension."""
    if 0xA0 <= first <= 0xBF:
        return 1 + (first & 31), 0
    width = LENGTHS.get(first)
    if width is None:
        return FIXED.get(first, 1), data[at + 1] if first in EXTENSIONS else 0
    size = 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "big")
    if first in EXTENSIONS:
        return size + 1, data[at + 1 + width]
    return size, 0
