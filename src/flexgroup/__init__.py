"""FlexGroup: ordered messaging between processes, to run, simulate, check and measure.

What an application needs is here: `connect`, `Link`, `Group`, `Message`, `View`; `Listener`,
functions instead of receiving; `Replica` and `ordered`, objects with a copy in every process;
`blocking`, the same without async; `values`, Python values as messages; `errors`. For notebooks and
scripts: `simulate` and `explore`, which return runs that show themselves.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from flexgroup._pure import choose_form

choose_form()

if TYPE_CHECKING:
    from flexgroup.client import blocking, errors, values
    from flexgroup.client.connecting import connect
    from flexgroup.client.group import Group, Link
    from flexgroup.client.message import GroupInfo, Listener, Message, View
    from flexgroup.core.errors import FlexGroupError
    from flexgroup.replica.blocking import BlockingReplica
    from flexgroup.replica.calls import ordered
    from flexgroup.replica.object import Replica
    from flexgroup.runs.explored import explore
    from flexgroup.runs.simulated import simulate

__version__ = "0.1.0"

__all__ = [
    "BlockingReplica",
    "FlexGroupError",
    "Group",
    "GroupInfo",
    "Link",
    "Listener",
    "Message",
    "Replica",
    "View",
    "blocking",
    "connect",
    "errors",
    "explore",
    "ordered",
    "simulate",
    "values",
]

# Found when first asked for, so that commands without a network start without it.
_HOMES = {
    "BlockingReplica": "replica.blocking",
    "FlexGroupError": "core.errors",
    "Group": "client.group",
    "GroupInfo": "client.message",
    "Link": "client.group",
    "Listener": "client.message",
    "Message": "client.message",
    "Replica": "replica.object",
    "View": "client.message",
    "connect": "client.connecting",
    "explore": "runs.explored",
    "ordered": "replica.calls",
    "simulate": "runs.simulated",
}
_MODULES = ("blocking", "errors", "values")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found: Any = import_module(f"flexgroup.client.{name}")
    elif name in _HOMES:
        found = getattr(import_module(f"flexgroup.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'flexgroup' has no attribute '{name}'")
    globals()[name] = found
    return found
