"""Corosync nodes on one machine, each in a network namespace of its own.

Nothing is installed into the system: Debian's packages are unpacked into a folder. Namespaces
are needed because the nodes of one namespace would answer to the same name; they take root. The
nodes are connected by a bridge in the namespace of the first. Corosync's real-time priority is
off: three nodes that want two processors for themselves would starve the members.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PACKAGES = """
    corosync libcpg4 libcorosync-common4 libqb100 libcfg7 libcmap4 libknet1 libnl-3-200
    libnl-route-3-200 libnozzle1 libquorum5 libstatgrab10 libvotequorum8 liblzo2-2
""".split()
TOOLS = "apt-get dpkg ip nsenter setpriv unshare".split()
ALONE = "setpriv --pdeathsig KILL unshare --net --mount".split()
"""Runs a command in namespaces of its own, and ends it when this process ends."""
ADDRESS = "10.99.0."

START_NODE = """
    set -e
    mount -t tmpfs none /run
    mount -t tmpfs none /var/lib
    mkdir /var/lib/corosync
    echo ready
    read go
    exec "$@"
"""


class CannotRunError(Exception):
    """Says what is missing on this machine."""


class Corosync:
    """The unpacked programs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        libraries = [folder / "root" / place for place in self._library_folders()]
        self.program = folder / "root/usr/sbin/corosync"
        self.environment = {"LD_LIBRARY_PATH": ":".join(map(str, libraries))}
        self.library = str(libraries[0] / "libcpg.so.4")

    @staticmethod
    def _library_folders() -> list[str]:
        triplet = f"{platform.machine()}-linux-gnu"
        return [f"usr/lib/{triplet}", f"lib/{triplet}"]

    def install(self) -> None:
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            raise CannotRunError(f"needs {', '.join(missing)} (Debian's packages are unpacked)")
        if os.geteuid() != 0:
            raise CannotRunError("needs root, for network namespaces")
        if self.program.exists():
            return
        packages = self._folder / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        fetch = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *PACKAGES]
        done = subprocess.run(fetch, cwd=packages, capture_output=True, text=True)
        if done.returncode:
            raise CannotRunError(
                f"apt-get cannot download it: {done.stderr.strip().splitlines()[-1:]}"
            )
        for package in sorted(packages.glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, self._folder / "root"], check=True)

    @contextmanager
    def cluster(self, nodes: int) -> Iterator[list[int]]:
        """Start nodes, and give the ids of their processes, whose namespaces members enter."""
        configuration = self._folder / "corosync.conf"
        configuration.write_text(configuration_of(nodes))
        command = [str(self.program), "-f", "-c", str(configuration)]
        with ExitStack() as stack:
            running = [stack.enter_context(self._node(command)) for _ in range(nodes)]
            pids = [node.pid for node in running]
            connect(pids)
            for node in running:
                assert node.stdin is not None
                node.stdin.write("go\n")
                node.stdin.flush()
            yield pids

    @contextmanager
    def _node(self, command: list[str]) -> Iterator[subprocess.Popen[str]]:
        log = self._folder / "corosync.log"
        with (
            log.open("a") as errors,
            subprocess.Popen(
                [*ALONE, "sh", "-c", START_NODE, "sh", *command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, **self.environment},
            ) as node,
        ):  # fmt: skip
            try:
                assert node.stdout is not None
                if node.stdout.readline() != "ready\n":
                    raise CannotRunError(f"no namespaces can be made here; see {log}")
                yield node
            finally:
                node.kill()


def configuration_of(nodes: int) -> str:
    listed = "".join(
        f"  node {{\n    nodeid: {number}\n    ring0_addr: {ADDRESS}{number}\n  }}\n"
        for number in range(1, nodes + 1)
    )
    return f"""\
totem {{
  version: 2
  cluster_name: bench
  transport: knet
  crypto_cipher: none
  crypto_hash: none
}}
nodelist {{
{listed}}}
logging {{
  to_stderr: yes
  to_syslog: no
}}
system {{
  sched_rr: no
  move_to_root_cgroup: no
}}
"""


def connect(pids: list[int]) -> None:
    """Make a bridge at the first node, and a cable from it to each other node."""
    first = pids[0]
    inside(first, "ip link set lo up")
    inside(first, "ip link add bridge type bridge")
    inside(first, f"ip addr add {ADDRESS}1/24 dev bridge")
    inside(first, "ip link set bridge up")
    for number, pid in enumerate(pids[1:], 2):
        inside(first, f"ip link add to{number} type veth peer name cable netns {pid}")
        inside(first, f"ip link set to{number} master bridge up")
        inside(pid, "ip link set lo up")
        inside(pid, f"ip addr add {ADDRESS}{number}/24 dev cable")
        inside(pid, "ip link set cable up")


def inside(pid: int, command: str) -> None:
    done = subprocess.run(
        [*entering(pid), *command.split()], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise CannotRunError(f"'{command}' fails here: {done.stderr.strip()}")


def entering(pid: int) -> list[str]:
    """Return what stands before a command that is to run in the network of a node."""
    return ["nsenter", f"--net=/proc/{pid}/ns/net"]
