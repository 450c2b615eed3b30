"""How long `import flexgroup` and `flexgroup --help` take, beside `import pandas`.

Each is started as a process of its own, in turn; the best of several counts. The ratio to
pandas, which people know, is what to look at: it should stay under 0.3.
"""

from __future__ import annotations

import subprocess
import sys
import time

ROUNDS = 7

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import pandas": ["-c", "import pandas"],
    "import flexgroup": ["-c", "import flexgroup"],
    "flexgroup --help": ["-m", "flexgroup.cli.main", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            best[name] = min(best[name], seconds(arguments))
    for name, took in best.items():
        print(f"{name:20} {took * 1000:7.0f} ms = {took / best['import pandas']:.2f} x pandas")


if __name__ == "__main__":
    main()
