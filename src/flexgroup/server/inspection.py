"""What a server tells of itself to whoever probes it."""

from __future__ import annotations

from flexgroup.server.hosting.replica import Replica
from flexgroup.server.metrics import Observed


def inspection(observed: Observed, totals: dict[str, float]) -> dict[str, object]:
    """A document of plain values, for people and scripts."""
    identity = observed.identity
    deployment = observed.deployment
    configuration = deployment.configuration
    return {
        "server": identity.name,
        "address": identity.address,
        "cluster": identity.cluster,
        "configuration": deployment.number or None,
        "changing": deployment.is_changing,
        "servers": [
            {
                "number": other.number,
                "name": other.name,
                "address": other.address,
                "linked": other.number in observed.links.by_server,
                "patience": observed.patience_with(other.number),
            }
            for other in configuration.servers
        ],
        "groups": [
            {
                "name": group.name,
                "stack": group.stack,
                "domain": group.domain or None,
                "partitionable": group.partitionable,
                "keep": group.keep or None,
                "owner": group.owner,
                "open": group.open,
                "view": group.view,
                "members": [
                    {"process": member.process, "server": member.server} for member in group.members
                ],
            }
            for group in configuration.groups
        ],
        "stacks": [
            {
                "stack": hosted.stack,
                "groups": [group.name for group in hosted.groups.values()],
                "promises": hosted.promises,
                "multicast": hosted.messages_cast,
                "envelopes": hosted.cast_count,
                "delivered": hosted.messages_delivered,
                "packets_sent": hosted.domain.packets_sent,
                "packets_received": hosted.domain.packets_received,
                "under_way": len(hosted.stability.own),
                "kept": len(hosted.stability.kept),
                "layers": [
                    {"layer": layer, "sent": sent} for layer, sent in hosted.sent_by_layer()
                ],
            }
            for hosted in deployment.domains
        ],
        "replicas": [
            {
                "domain": entry.number,
                "stack": entry.stack,
                "groups": [
                    {"name": group.name, "servers": list(group.servers)} for group in entry.groups
                ],
                "here": _replica(observed.replicas.get(entry.number)),
            }
            for entry in configuration.replicated
        ],
        "clients": [
            {
                "name": session.name,
                "from": session.connection.where(),
                "sent": session.sent,
                "groups": [
                    {
                        "group": seat.name,
                        "process": seat.process,
                        "member": seat.member,
                        "delivered": seat.delivered,
                        "queued": len(seat.queue),
                        "credit": seat.credit,
                    }
                    for seat in session.seats.values()
                ],
            }
            for session in observed.sessions.values()
        ],
        "refused": dict(sorted(observed.acceptor.refusals.items())),
        "totals": totals,
    }


def _replica(replica: Replica | None) -> dict[str, object] | None:
    """What is known of the replica at this server; None: there is none."""
    if replica is None:
        return None
    servers = replica.entry.servers
    return {
        "process": replica.process,
        "group": replica.group.name,
        "incarnation": replica.incarnation,
        "multicast": replica.casts,
        "delivered": replica.numbered,
        "under_way": replica.under_way,
        "packets_sent": replica.domain.packets_sent,
        "packets_received": replica.domain.packets_received,
        "suspected": [servers[process] for process in sorted(replica.suspected)],
        "kept_for": {
            name: replica.kept_for(process)
            for process, name in enumerate(servers)
            if process != replica.process
        },
    }
