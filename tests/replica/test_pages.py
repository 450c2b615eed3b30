"""What the README and the page on replicas show, with real servers."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from textwrap import indent

from flexgroup import Replica, ordered

from ..client.loops import on_a_loop
from ..docs.fences import ROOT, fences
from ..network.in_process import servers


class Counter(Replica):
    value = 0

    @ordered
    def add(self, n: int) -> int:
        self.value += n
        return self.value


def program_of(page: Path) -> str:
    [text] = [fence.text for fence in fences(page) if "(Replica)" in fence.text]
    return text


async def output_of(program: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


@on_a_loop
async def test_the_counter_of_the_page_counts_while_a_replica_stays(tmp_path: Path) -> None:
    program = tmp_path / "counter.py"
    program.write_text(program_of(ROOT / "docs" / "replicas.md"))
    async with servers(2) as (one, two):
        both = f"{one.address},{two.address}"
        assert await output_of(program, both) == "3\n"
        async with Counter().join("counter", both) as counter:
            assert await counter.add(4) == 4  # nobody had kept the first one
            assert await output_of(program, both) == "7\n"


@on_a_loop
async def test_the_counter_of_the_readme_takes_at_most_twelve_lines_and_counts() -> None:
    text = program_of(ROOT / "README.md")
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 12
    async with servers(2) as (one, two):
        here = text.replace("localhost:7400", one.address).replace("localhost:7401", two.address)
        head, _, rest = here.partition("async with")
        program = f"{head}\nasync def main():\n" + indent(f"async with{rest}", "    ")
        printed: list[object] = []
        names: dict[str, object] = {"__name__": "page", "print": printed.append}
        exec(program, names)
        main = names["main"]
        assert callable(main)
        await main()
        assert printed == [3]
