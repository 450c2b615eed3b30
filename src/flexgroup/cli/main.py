"""The command `flexgroup`: runs a subcommand, and turns errors into one line.

Little is imported before `main` runs, where Ctrl-C is an error like others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.core.errors import FlexGroupError

if TYPE_CHECKING:
    from logging import LogRecord

BAD_INPUT = 2
INTERRUPTED = 130
OUTPUT_CLOSED = 141
"""The code of a program that the signal SIGPIPE ends: nobody was told what it has found."""


def main(arguments: Sequence[str] | None = None) -> int:
    code = OUTPUT_CLOSED
    try:
        import logging

        from flexgroup.cli.parser import build_parser
        from flexgroup.runs.own_protocols import configured_protocols, import_protocols

        options = build_parser().parse_args(arguments)
        options.protocols = [*configured_protocols(Path.cwd()), *options.protocols]
        import_protocols(options.protocols)
        logging.getLogger().addFilter(_is_news)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except FlexGroupError as error:
        _fail(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        _fail("interrupted; nothing half-written was kept")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return code
    except OSError as error:
        # A full disk, a missing permission: nothing that a traceback would help with.
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return BAD_INPUT


def _fail(message: str) -> None:
    print(f"flexgroup: error: {message}", file=sys.stderr)


def _is_news(record: LogRecord) -> bool:
    """Leave out the traceback that Spark's bridge to Java logs before Ctrl-C reaches us."""
    return not str(record.msg).startswith("KeyboardInterrupt while sending command")


def _discard_output() -> None:
    """Write no more, since the reader of our output, such as `head`, has seen enough."""
    # Python flushes what is left when it ends, and would complain then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
