"""The membership of a group of servers: one state machine per server, without input or output.

All servers pass through the same *configurations*, one after another: which servers there are,
which groups, and who is a member where. `docs/membership.md` describes the protocol; this is the
contract between the state machine, `flexgroup.membership.machine.Membership`, and its host.

**Events.** The host calls a method of the machine for each thing that happens and passes the time,
in seconds that never go backwards. The machine has no clock of its own.

| event | method |
| --- | --- |
| this server is the first of a new group | `found` |
| it is started again, with what it has saved | `restore` |
| it has a link to a contact, through which it wants to join | `join` |
| the link to the contact is lost | `contact_lost` |
| a client, or the server itself, wants something changed | `propose` |
| a message about membership has come | `received` |
| anything at all has come from a server | `heard` |
| the link to a server is lost, or its process is certainly dead | `link_lost` |
| another server of the cluster answers where a server was | `replaced` |
| what a change concerns has stopped, as `Freeze` asked | `frozen` |
| everything is delivered that `Drain` asked for | `drained` |
| time has passed; to be called about every 50 ms | `tick` |

**Effects.** After each event the host takes what the machine asks for (`take_effects`) and carries
it out, in order; `flexgroup.membership.effects` lists the kinds. A host may call the machine while
it carries out an effect, and what that asks for comes after the rest.

**Links** are numbers that the host chooses. The machine hands them back in `SendOn` and does
nothing else with them.

**State** is plain data: numbers, texts, immutable messages, and containers and objects of those,
without callbacks, so that a copy (`copy.deepcopy`, in the pure form) shares nothing that changes
with the original. Equal machines that are told equal events ask for equal effects: nothing depends
on chance, on the order of a set, or on where an object lies in memory.
"""
