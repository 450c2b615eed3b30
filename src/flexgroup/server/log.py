"""Logs of a server: a line for people or a JSON object for each event, on standard error.

Modules log with the standard library: `log.info("installed", extra={"data": {...}})`. The message
names the event, and `data` says about what.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO


def set_up_logging(kind: str, stream: TextIO | None = None) -> None:
    """`text`, `json` or `none`; anew each time it is called."""
    logger = logging.getLogger("flexgroup")
    logger.handlers.clear()
    logger.propagate = False
    if kind == "none":
        logger.addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else ReadableLines())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def details(record: logging.LogRecord) -> dict[str, Any]:
    """What the event is about."""
    data: dict[str, Any] = getattr(record, "data", {})
    return data


def moment(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """One object a line; strings from elsewhere cannot break out of it."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **details(record),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


class ReadableLines(logging.Formatter):
    """`2026-01-31T12:00:00.000Z warning refused from=10.0.0.9:5151 reason="..."`"""

    def format(self, record: logging.LogRecord) -> str:
        words = [moment(record), f"{record.levelname.lower():7}", record.getMessage()]
        words += [f"{key}={self._shown(value)}" for key, value in details(record).items()]
        line = " ".join(words)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

    @staticmethod
    def _shown(value: object) -> str:
        if not isinstance(value, str):
            return json.dumps(value, default=str)
        plain = value.isprintable() and value and not set(value) & set(' "=')
        return value if plain else json.dumps(value)
