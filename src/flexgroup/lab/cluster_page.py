"""The page of a live cluster, as parts that are sent again when they have changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from flexgroup.diagram.markup import Markup, element, join
from flexgroup.lab.cluster import GROUP, MOST_A_SECOND, SECONDS_KEPT, STACK, LiveCluster, SeenServer
from flexgroup.lab.member import LabMember
from flexgroup.lab.page import document
from flexgroup.lab.rates import Series, rates
from flexgroup.protocols.catalogue import PROTOCOLS

PATH = "/cluster"


def parts(live: LiveCluster, token: str) -> dict[str, Markup]:
    """Return what changes on the page, by the id of the element that it stands in."""
    found = {"summary": _summary(live), "rates": _rates(live), "groups": _groups(live)}
    for number, server in enumerate(live.servers.values()):
        found[f"server-{number}"] = _facts(server, live.document)
        if server.local is not None:
            found[f"acts-{number}"] = _acts(server, token)
    for number, member in live.members.items():
        found[f"member-{number}"] = _heard(member)
        found[f"member-acts-{number}"] = _member_acts(number, member, token)
    found["happened"] = _happened(live)
    found["found"] = _found(live)
    return found


def cluster_page(live: LiveCluster, token: str) -> Markup:
    now = parts(live, token)

    def part(name: str, **attributes: str) -> Markup:
        return element("div", now[name], id=name, data_part=name, **attributes)

    servers = [
        element(
            "article",
            part(f"server-{number}"),
            part(f"acts-{number}") if f"acts-{number}" in now else "",
            class_="card",
        )
        for number in range(len(live.servers))
    ]
    return document(
        "Live cluster",
        element("h1", "A live cluster"),
        part("summary"),
        element("p", "", role="alert", id="refusal"),
        _section("Servers", element("div", *servers, class_="cards fit")),
        _section("Rates", part("rates")),
        _section("Groups", part("groups")),
        _members(live, now, token),
        _section("What happened", part("happened", role="log", aria_label="What happened")),
        _section("Promises that were broken", part("found")),
        live=f"{PATH}/events",
    )


def _section(heading: str, *content: object) -> Markup:
    name = heading.lower().replace(" ", "-")
    return element("section", element("h2", heading, id=name), *content, aria_labelledby=name)


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _summary(live: LiveCluster) -> Markup:
    told = live.document
    if told is None:
        words = "No server answers."
    else:
        servers, groups = (
            _counted(len(told["servers"]), "server"),
            _counted(len(told["groups"]), "group"),
        )
        number = told["configuration"]
        words = f"Cluster {told['cluster']}, configuration {number} of {servers}, {groups}."
    refresh = element("a", "Look again", href=PATH, class_="refresh")
    return element("p", f"{words} Looked at {_clock(time.time())}. ", refresh, class_="quiet")


# Servers.


def _facts(server: SeenServer, latest: dict[str, Any] | None) -> Markup:
    look, state = server.look, server.state
    rows: list[tuple[str, object]] = [("at", server.address)]
    if look is not None:
        told = look.told
        known = sorted(other["name"] for other in told["servers"])
        rows += [
            ("configuration", f"{told['configuration']} of {', '.join(known)}"),
            ("members, clients", f"{look.members}, {look.clients}"),
            ("multicast, delivered a second", f"{look.multicasts:,.0f}, {look.deliveries:,.0f}"),
            ("queued", look.queued),
            ("answers in", f"{1000 * look.seconds:.1f} ms"),
        ]
        if latest is not None and told["configuration"] != latest["configuration"]:
            rows.append(("does not know", f"configuration {latest['configuration']}"))
    kind = "holds" if state == "running" else "unknown" if look is not None else "violated"
    facts = [element("div", element("dt", name), element("dd", value)) for name, value in rows]
    return join(
        [
            element("h3", server.name or server.address, " ", element("span", state, class_=kind)),
            element("dl", *facts, class_="state"),
        ]
    )


def _acts(server: SeenServer, token: str) -> Markup:
    assert server.local is not None
    if not server.local.is_running:
        acts = [("start", "Start again")]
    elif server.local.is_cut:
        acts = [("mend", "Mend"), ("kill", "Kill")]
    else:
        acts = [("cut", "Cut off"), ("kill", "Kill")]
    buttons = [
        element(
            "button", words, " ", element("span", server.name, class_="unseen"), type="submit",
            name="act", value=act,
        )
        for act, words in acts
    ]  # fmt: skip
    return _form("server", token, _hidden("server", server.name), *buttons, class_="acts")


def _form(act: str, token: str, *content: object, **attributes: str) -> Markup:
    return element(
        "form",
        _hidden("token", token),
        *content,
        method="post",
        action=f"{PATH}/{act}",
        data_quiet="",
        **attributes,
    )


def _hidden(name: str, value: str) -> Markup:
    return element("input", type="hidden", name=name, value=value)


# Rates.


def _rates(live: LiveCluster) -> Markup:
    servers = [
        Series(server.name or server.address, server.deliveries, number)
        for number, server in enumerate(live.servers.values())
    ]
    found = live.latencies()
    if found:
        middle, slow = found[len(found) // 2], found[min(len(found) - 1, len(found) * 99 // 100)]
        words = (
            f"Of {_counted(len(found), 'message')} of the lab in the last ten seconds, half came "
            f"back to their sender within {middle:.1f} ms, and 99 of 100 within {slow:.1f} ms."
        )
    else:
        words = "No message of the lab came back to its sender in the last ten seconds."
    return join(
        [
            element(
                "div",
                rates("Deliveries", servers, SECONDS_KEPT, "a second"),
                rates("Latency", [Series("mean", live.latency)], SECONDS_KEPT, "ms"),
                class_="pair",
            ),
            element("p", words),
        ]
    )


# Groups and members.


def _groups(live: LiveCluster) -> Markup:
    told = live.document
    if told is None or not told["groups"]:
        return element("p", "There is no group yet. A member creates one by joining it.")
    names = {server["number"]: server["name"] for server in told["servers"]}
    promises = {stack["stack"]: ", ".join(stack["promises"]) for stack in told["stacks"]}
    for domain in told["replicas"]:
        for group in domain["groups"]:
            promises[domain["stack"]] = f"replicas at {', '.join(group['servers'])}"
    heads = ("group", "stack", "view", "members", "what its stack promises")
    rows = [
        (
            group["name"],
            group["stack"],
            group["view"],
            ", ".join(
                f"{member['process']} at {names.get(member['server'], member['server'])}"
                for member in group["members"]
            )
            or "nobody",
            promises.get(group["stack"], "told by its servers"),
        )
        for group in told["groups"]
    ]
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
            element("tbody", *(_row(heads, row) for row in rows)),
            class_="stacked",
        ),
        class_="scroll",
        tabindex="0",
    )


def _row(heads: Sequence[str], cells: Sequence[object]) -> Markup:
    found = (element("td", cell, data_head=head) for head, cell in zip(heads, cells, strict=True))
    return element("tr", *found)


def _members(live: LiveCluster, now: dict[str, Markup], token: str) -> Markup:
    cards = [
        element(
            "article",
            *(
                element("div", now[name], id=name, data_part=name)
                for name in (f"member-{number}", f"member-acts-{number}")
            ),
            class_="card",
        )
        for number in live.members
    ]
    return _section(
        "Members in this lab",
        element("p", "They send what you write, and show what they receive, in their order."),
        element("div", *cards, class_="cards fit"),
        _steady(live, token) if cards else "",
        _join(live, token),
    )


def _member_acts(number: int, member: LabMember, token: str) -> Markup:
    which = _hidden("member", str(number))
    unseen = element("span", member.name, class_="unseen")
    if member.reason:
        again = element("button", "Join again ", unseen, type="submit")
        remove = element("button", "Remove ", unseen, type="submit", class_="slight")
        return element(
            "div",
            _form("again", token, which, again),
            _form("leave", token, which, remove),
            class_="acts",
        )
    text = element(
        "input", name="text", required="", maxlength="2000", placeholder="a message",
        autocomplete="off",
    )  # fmt: skip
    words = element("span", f"Message of {member.name}", class_="unseen")
    send = element("button", "Send ", unseen, type="submit")
    leave = element("button", "Leave ", unseen, type="submit", class_="slight")
    return join(
        [
            _form("send", token, which, element("label", words, text), send, class_="acts"),
            _form("leave", token, which, leave, class_="acts"),
        ]
    )


def _heard(member: LabMember) -> Markup:
    view = f", view {member.view.number}"
    told = [element("h3", f"{member.name} in {member.group.name}")]
    told.append(
        element("p", f"at {member.server}{view}; {member.count:,} received", class_="quiet")
    )
    if member.reason:
        told.append(element("p", member.reason, class_="violated"))
    heard = [
        element("li", element("span", f"{sender}: ", class_="quiet"), text, value=str(number))
        for number, sender, text in member.received
    ]
    told.append(element("ol", *heard, class_="heard"))
    return join(told)


def _join(live: LiveCluster, token: str) -> Markup:
    """The form with which one more member joins a group."""
    told = live.document
    groups = [group["name"] for group in told["groups"]] if told is not None else []
    servers = [
        element("option", server.name or server.address, value=server.address)
        for server in live.servers.values()
    ]
    return _form(
        "join",
        token,
        element("h3", "One more member"),
        element(
            "div",
            _field("Group, which is created if need be", element(
                "input", name="group", value=[*groups, GROUP][0], required="",
                list="groups-known")),
            _field("Stack of a group that is created, lowest first", element(
                "input", name="stack", value=STACK, list="stacks-known")),
            _field("At", element("select", *servers, name="server")),
            class_="fields",
        ),
        element("datalist", *(element("option", value=name) for name in groups), id="groups-known"),
        element("datalist", *(element("option", value=name) for name in PROTOCOLS),
                id="stacks-known"),
        element("p", element("button", "Join", type="submit")),
    )  # fmt: skip


def _steady(live: LiveCluster, token: str) -> Markup:
    return _form(
        "steady",
        token,
        element(
            "p",
            "Each of them sends ",
            element(
                "label",
                element("span", "messages a second", class_="unseen"),
                element("input", type="number", name="messages", value=str(live.steady), min="0",
                        max=str(MOST_A_SECOND)),
            ),
            " messages a second, again and again. ",
            element("button", "Set", type="submit"),
        ),
    )  # fmt: skip


def _field(words: str, control: Markup) -> Markup:
    return element("label", element("span", words), control)


# What happened, and what was found.


def _happened(live: LiveCluster) -> Markup:
    if not live.happenings:
        return element("p", "Nothing yet.")
    items = [
        element("li", element("time", _clock(at)), " ", words) for at, words in live.happenings
    ]
    return element("ul", *items, class_="happenings")


def _found(live: LiveCluster) -> Markup:
    watching = live.watching
    if watching is None:
        return element(
            "p",
            "Nobody watches: servers that record what they do (",
            element("code", "flexgroup server --trace DIR"),
            ") are watched with ",
            element("code", "flexgroup lab --cluster ADDRESS --trace DIR"),
            ".",
        )
    if watching.ended:
        return element("p", watching.ended, class_="violated")
    count, over = len(watching.broken), watching.runs_over
    words = f"So far: {_counted(count, 'promise')}." if count else "None was found so far."
    told = [
        element("p", words, class_="violated" if count else "holds"),
        element("p", f"The trace in {watching.traces} is watched; {_counted(over, 'run')} "
                "came to an end.", class_="quiet"),
    ]  # fmt: skip
    for found in watching.told:
        told.append(
            element(
                "h3",
                element("time", _clock(found.at)),
                f" {found.heading}",
                class_="violated" if found.is_violation else None,
            )
        )
        told.append(element("p", found.run, class_="quiet small"))
        if found.explanation:
            told.append(
                element(
                    "pre", found.explanation, class_="explanation" if found.is_violation else None
                )
            )
    return join(told)  # fmt: skip


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def no_cluster_page() -> Markup:
    """Return what is said where the lab was started without a cluster."""
    ways = [
        ("flexgroup lab --servers 3", "starts three servers of its own on this machine"),
        (
            "flexgroup lab --cluster 10.0.0.5:7400",
            "looks at servers that run, and asks them for the others",
        ),
    ]
    return document(
        "Live cluster",
        element("h1", "No cluster here"),
        element("p", "This lab was started without one. Start it as"),
        element(
            "dl",
            *(
                join([element("dt", element("code", way)), element("dd", what)])
                for way, what in ways
            ),
        ),
        element("p", element("a", "Begin a run", href="/")),
    )
