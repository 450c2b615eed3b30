"""The group server of a machine.

| where | what |
| --- | --- |
| `server.py` | a server's life: starting, joining, installing configurations, ending |
| `connection.py` | connections that are accepted or opened, and the frames that come on them |
| `switchboard.py` | between the other servers, the hosted domains, and the clients |
| `peers/` | the other servers: links to them, and the host of the membership protocol |
| `hosting/` | the domains of the configuration that is installed |
| `clients/` | the clients: sessions, what they send and ask for, what is delivered to them |
| `recording/` | the trace, handed over to a process that writes it |
| `metrics.py`, `inspection.py` | what a server tells of itself |

The way of a message, from a client through its server and another one to a client there:

1. `Connection` cuts what the socket has into frames; `Session` decodes the requests of a frame.
2. `Intake` finds the domain of the groups, and packs the message with others to the same groups.
3. At the end of the round of the event loop, the `Switchboard` has the pack multicast by its
   `HostedDomain`; members at this server get what the stack delivers at once, and the packets of
   the stack are gathered by `PeerLinks`, a frame for each of the other servers.
4. There, `Connection` cuts frames, `PeerLink` reads which domain is meant, and the `Switchboard`
   hands the packets to that `HostedDomain`.
5. At the end of the round, the `Switchboard` takes what the stack has delivered, and
   `LocalMembers` puts it into the sessions of the members, which send a frame each.
"""
