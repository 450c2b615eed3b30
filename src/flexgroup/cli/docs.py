"""`flexgroup docs`: the documentation as a site."""

from __future__ import annotations

import argparse
from pathlib import Path

from flexgroup.cli.arguments import Command, Option, make_folder, path_here, print_json
from flexgroup.core.errors import UsageError

COMMAND = Command(
    "docs",
    "build the documentation as a site, with figures, the gallery and search",
    "flexgroup docs --out runs/site",
    (
        Option(
            "tree", nargs="?", type=path_here, default=Path(), metavar="DIR",
            help="the folder with FlexGroup's sources (this one)",
        ),
        Option(
            "--out", type=path_here, default=Path("runs/site"), metavar="DIR",
            help="where the pages go (%(default)s); open index.html there",
        ),
    ),
    "Build a site from the Markdown of a source tree, without network. It needs no server.",
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    try:
        from flexgroup.site.build import build
    except ModuleNotFoundError as error:
        raise UsageError(
            f"this needs {error.name}, which is not installed: pip install 'flexgroup[lab]'"
        ) from None
    make_folder(options.out)
    built = build(options.tree, options.out)
    index = options.out / "index.html"
    if options.json:
        print_json({"index": str(index), "pages": built.pages, "files": built.files})
    else:
        print(f"{index}: {built.pages} pages")
    return 0
