"""`/holds/{id}`: one call from its hold to its end, as it stands on the record, with the receipt of every step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from aiohttp import web

from engine.core.amounts import parse
from engine.core.documents import Life
from projector.audit.life import Event
from projector.audit.looking import STRETCH_MESSAGES_MAX, SeenLife
from web.asks import check_hold
from web.desk import Desk
from web.html import Html, element, joined
from web.known import Terms
from web.pages.amounts import counted, lasting
from web.pages.frame import SignedIn, show
from web.pages.happenings import happening, written
from web.pages.meters import meter
from web.pages.past_words import HOLD
from web.pages.serving import Page
from web.pages.zoned import clock_ms
from web.past import after_of, life_of

CHAIN_DIGITS = 12  # of a receipt's chain: the rest is in its title


async def _hold(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    id = check_hold(request.match_info["id"], field="id", caller=visitor.caller)
    life, seen = await life_of(desk, id, after_of(request))
    if not seen.events:
        return _nothing(visitor, id, seen)
    terms = desk.known.terms
    body = joined([
        element("p", HOLD.title, class_="kicker"),
        element("h1", element("code", id)),
        _state(life, seen),
        element("div", _figures(seen, terms), _facts(seen), class_="call card"),
        _timeline(seen, terms),
        _how_far(id, seen),
    ])  # fmt: skip
    return show(visitor, title=HOLD.id.format(id=id), body=body, here="/days", styles=("past.css",))


def _nothing(visitor: SignedIn, id: str, seen: SeenLife) -> web.Response:
    said = HOLD.not_found.format(n=counted(STRETCH_MESSAGES_MAX))
    body = joined([
        element("p", HOLD.title, class_="kicker"),
        element("h1", element("code", id)),
        element("p", said, class_="note"),
        _how_far(id, seen, export=False),
    ])  # fmt: skip
    return show(visitor, title=HOLD.not_found_title, body=body, here="/days", styles=("past.css",), status=404)


# --- what it came to --------------------------------------------------------------------------------------------------


def _state(life: Life | None, seen: SeenLife) -> Html:
    state = life.state if life is not None else _last_state(seen.events)
    return element("p", HOLD.states.get(state, ""), class_=f"state {state}", data_state=state)


def _last_state(events: Iterable[Event]) -> str:
    """As the record says it, for a call that the wallet does not remember."""
    state = ""
    for event in events:
        match event.outcome["outcome"]:
            case "held":
                state = "open"
            case "settled" | "stray":
                state = event.outcome["state"]
            case "lapsed":
                state = "lapsed"
            case "exhausted" | "frozen" | "cooling" | "revoked" | "late" | "invalid" if not state:
                state = "refused"
            case _:
                pass
    return state


def _figures(seen: SeenLife, terms: Terms) -> Html:
    """What was held, what it cost, what came back; drawn where the two can be held against each other."""
    granted, charged = _newest(seen.events, "held", "amounts"), _newest(seen.events, "", "charged")
    ended = any(happening(event, terms).kind == "end" for event in seen.events)
    scales = terms.scales
    back = _sum(seen.events, scales)
    asked = {} if granted else _asked(seen.events[0])
    returned = back if ended else {}
    lines = [(HOLD.wanted, asked), (HOLD.granted, granted), (HOLD.charged, charged), (HOLD.returned, returned)]
    rows = [element("div", element("dt", name), element("dd", written(amounts))) for name, amounts in lines if amounts]
    drawings = [
        _drawn(unit, granted[unit], charged.get(unit, "0"), scales[unit], ended=ended)
        for unit in granted
        if unit in scales
    ]
    return element("div", *drawings, element("dl", *rows, class_="lines"))


def _drawn(unit: str, granted: str, charged: str, scale: int, *, ended: bool) -> Html:
    limit, cost = parse(granted, unit=unit, scale=scale), parse(charged, unit=unit, scale=scale, signed=True)
    held = 0 if ended else max(0, limit - cost)
    drawing, _ = meter(limit=limit, settled=cost, extra=0, held=held, name=HOLD.title)
    if limit <= 0:
        return Html("")
    share = f"{cost * 100 // limit}"
    said = HOLD.meter_over if cost > limit else HOLD.meter if ended else HOLD.meter_open
    return joined([drawing, element("p", said.format(share=share), class_="quiet")])


def _asked(first: Event) -> dict[str, str]:
    """What a call wanted that was held nothing: its first option."""
    options = (first.ask or {}).get("options", ())
    return dict(options[0]["amounts"]) if options else {}


def _newest(events: Iterable[Event], outcome: str, field: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for event in events:
        if (not outcome or event.outcome["outcome"] == outcome) and event.outcome.get(field):
            found = event.outcome[field]
    return found


def _sum(events: Iterable[Event], scales: Mapping[str, int]) -> dict[str, str]:
    """What came back, as the newest settlement that gave anything back says it."""
    return {unit: amount for unit, amount in _newest(events, "settled", "released").items() if unit in scales}


def _facts(seen: SeenLife) -> Html:
    first = seen.events[0]
    ask: Mapping[str, Any] = first.ask or {}
    budgets = _newest(seen.events, "held", "budgets") or first.outcome.get("budgets", {})
    lasted = seen.events[-1].at_ns - first.at_ns
    facts: list[tuple[str, Html]] = []
    if budgets:
        lines: Mapping[str, Any] = budgets
        facts.append((HOLD.counts_to, joined(
            element("span", HOLD.in_period.format(budget=name, period=line["period"]), class_="tag")
            for name, line in lines.items() if isinstance(line, Mapping)
        )))  # fmt: skip
    if labels := ask.get("labels"):
        facts.append((HOLD.labels, joined(
            element("span", element("b", name), " ", value, class_="tag") for name, value in sorted(labels.items())
        )))  # fmt: skip
    if book := ask.get("price_book"):
        facts.append((HOLD.price_book, element("code", book)))
    if len(seen.events) > 1:
        facts.append((HOLD.lasted, Html(element("span", _long(lasted)))))
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in facts)
    return element("dl", *rows, class_="facts")


# --- what happened ----------------------------------------------------------------------------------------------------


def _timeline(seen: SeenLife, terms: Terms) -> Html:
    start = seen.events[0].at_ns
    items = (_item(event, start, terms) for event in seen.events)
    parts = [element("h2", HOLD.timeline), element("ol", *items, class_="timeline")]
    if seen.more:
        parts.append(element("p", HOLD.more.format(n=counted(seen.more)), class_="quiet"))
    parts.append(element("p", HOLD.only_recorded, class_="quiet"))
    return element("section", *parts, class_="day-part card")


def _item(event: Event, start: int, terms: Terms) -> Html:
    found = happening(event, terms)
    day, clock = event.at[:10], clock_ms(event.at_ns, "UTC")
    chain = str(event.receipt["chain"])
    after = event.at_ns - start
    when = element("p", element("time", f"{day} ", element("b", clock), " UTC", datetime=event.at), class_="when")
    if after > 0:
        when = joined([when, element("p", HOLD.after.format(time=_long(after)), class_="after")])
    proof = element(
        "p", HOLD.message.format(seq=counted(event.seq)), " \N{MIDDLE DOT} ",
        HOLD.receipt.format(seq=counted(event.receipt["seq"])), " \N{MIDDLE DOT} ",
        element("code", chain[:CHAIN_DIGITS], title=chain), class_="proof-line",
    )  # fmt: skip
    notes = (element("p", note, class_="quiet") for note in found.notes)
    said = element("div", element("p", found.headline, class_="headline"), *notes, proof)
    return element("li", element("div", when, class_="moment-of"), said, class_=found.kind, data_seq=event.seq)


def _how_far(id: str, seen: SeenLife, *, export: bool = True) -> Html:
    said = HOLD.read_to.format(after=counted(seen.after + 1), upto=counted(seen.upto), end=counted(seen.end))
    address = f"/holds/{quote(id, safe='')}"
    parts: list[str | Html] = [said, " "]
    if seen.upto < seen.end:
        parts.append(element("a", HOLD.read_on, href=f"{address}?after={seen.upto}"))
    lines = [element("p", *parts, class_="quiet")]
    if export:
        link = element("a", HOLD.json, href=f"{address}/events.json?after={seen.after}", download=True)
        lines.append(element("p", HOLD.export, link, class_="quiet exports"))
    return element("div", *lines, class_="below")


def _long(ns: int) -> str:
    """`45.730 s`, `1 min 31.460 s`, `6 h 12 min`."""
    minutes, ms = divmod(ns // 1_000_000, 60_000)
    seconds = f"{ms // 1_000}.{ms % 1_000:03} s"
    return lasting(ns) if minutes >= 60 else f"{minutes} min {seconds}" if minutes else seconds


PAGES = (Page(path="/holds/{id}", handler=_hold),)
