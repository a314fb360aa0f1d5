#!/usr/bin/env python3
"""Proves the record of a wallet from one file: `python verify.py record.jsonl`. Standard library only, no network.

The file is what `purse export --raw record.jsonl` wrote: every message of the stream as it lies there. This program
shares no line with the product: it was written from the description of the stream, so that whoever checks the books
need not trust the software that keeps them. It checks, from the first message on,

- that no sequence is missing, standing twice or out of order;
- the chain: BLAKE2b-256 over the previous chain, each ask message covered (sequence and timestamp in 8 bytes each,
  big-endian, then its raw bytes), and the told's own bytes before the chain;
- that what lies among the tolds and is none is an answer of the broker's own, whole and with no field of a told;
- that each told covers exactly the ask messages before it, each at its own moment, with one outcome an ask;
- the arithmetic: what was asked is what was charged, every hold ends once, every figure told of a budget is what the
  outcomes before it add up to, and no `held` makes more used than the limit written in it, which is the plan's;
- the seals: the first message at or after the end of the wallet's day seals it, once, and no other does; each shared
  budget, the open holds and the last message before the end are what the entries before the seal come to;
- receipts (`--receipt SEQ:CHAIN`): what somebody was told once still stands there. Only a receipt kept elsewhere shows
  that the end was cut off or that a whole stream was written anew.

It does not decide again (whether another refusal would have been right), does not know what providers really billed,
and does not prove what the chain does not cover: the server's stamps on tolds, and asks at the end without a told. When
days end it knows by this machine's time zone data; of a zone that these lack it takes the seals' word, and says so.

Exit status: 0 all of it holds; 1 it does not, and the first bad sequence is named; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import base64
import heapq
import json
import re
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

NS = 10**9
GENESIS = bytes(32)
CHAIN_FIELD = b',"chain":"'
TAIL_BYTES = len(CHAIN_FIELD) + 64 + len(b'"}')
SEALS_MAX = 100  # in one entry
LAPSES_MAX = 4_096  # fall due at one message; the rest at the next
CHAINS_KEPT = 65_536  # tolds whose chains are remembered for receipts inside the record
PRUNE_EVERY = 4_096  # entries between two looks for meters that are over
LINE_CHARS_MAX = 32 * 2**20
SCALES = {"usd": 9, "neurons": 6, "tokens": 0, "jpy": 6, "requests": 0}
OF_A_TOLD = frozenset({"v", "engine", "upto", "n", "told", "chain"})
OF_THE_BROKER = frozenset({"stream", "error", "type"})
RECEIPT = re.compile(r"([1-9][0-9]{0,18})[: ]([0-9a-f]{64})", re.ASCII)
ANSWERS = {
    "hold": "held exhausted frozen cooling revoked late closed again conflict invalid",
    "settle": "settled stray forgotten again conflict invalid",
    "renew": "held exhausted frozen cooling revoked closed unknown again conflict invalid",
    "observe": "observed again conflict invalid",
    "adjust": "adjusted again conflict invalid",
    "plan": "planned again conflict invalid",
    **dict.fromkeys(("freeze", "thaw", "revoke", "restore", "loss", "clock"), "done again conflict invalid"),
}

Document = dict[str, Any]
Amounts = dict[str, int]


class Bad(Exception):
    """The record does not hold. `seq` is the first bad sequence, `since` the first message that may be the cause."""

    def __init__(self, seq: int, why: str, *, since: int | None = None, told: int | None = None) -> None:
        super().__init__(why)
        self.seq, self.why, self.since, self.told = seq, why, since, told


class Wrong(Exception):
    """An outcome that does not add up; whoever knows its sequence makes it `Bad`."""


class Message(NamedTuple):
    """One message as it lies on the stream."""

    seq: int
    ts: int
    kind: str
    raw: bytes
    seen: str


class Loss(NamedTuple):
    """An operator's word that messages of this range are lost, and where it lies."""

    seq: int
    first: int
    last: int


# --- reading the file -------------------------------------------------------------------------------------------------


def lines(file: TextIO) -> Iterator[tuple[int, Document]]:
    """The objects of a file with one in each line. Raises `Bad`."""
    number = 0
    while line := file.readline(LINE_CHARS_MAX):
        number += 1
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise Bad(0, f"line {number:,} of the file is no JSON object, or is longer than any message")
        yield number, document


def messages(path: Path) -> Iterator[Message | Document]:
    """The header, if there is one, then every message. Raises `Bad`."""
    after = 0
    with path.open(encoding="utf-8", errors="strict", newline="\n") as file:
        try:
            for number, line in lines(file):
                if "export" in line and number == 1:
                    yield line
                    continue
                try:
                    message = _message(line)
                except (KeyError, TypeError, ValueError) as error:
                    raise Bad(after + 1, f"line {number:,} of the file is no stored message") from error
                after = message.seq
                yield message
        except UnicodeDecodeError as error:
            raise Bad(after + 1, "the file is not UTF-8 text") from error
        except Bad as bad:
            raise bad if bad.seq else Bad(after + 1, bad.why) from None


def _message(line: Document) -> Message:
    data = line["data"].encode() if "data" in line else base64.b64decode(line["base64"], validate=True)
    seq, ts, kind = line["seq"], line["ts"], line["kind"]
    if type(seq) is not int or type(ts) is not int or not 0 < seq < 2**63 or not 0 <= ts < 2**63:
        raise ValueError
    if kind not in ("ask", "admin", "told"):
        raise ValueError
    return Message(seq, ts, kind, data, str(line.get("seen", "")))


def asks_of(raw: bytes) -> list[Document] | None:
    """The asks of a message, None where it cannot be read."""
    try:
        asks = json.loads(raw)["asks"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return asks if isinstance(asks, list) and all(isinstance(ask, dict) for ask in asks) else None


def is_foreign(raw: bytes) -> bool:
    """Whether what lies among the tolds is an answer of the broker: nothing that ever was a told, damaged or not."""
    if raw[-TAIL_BYTES:].startswith(CHAIN_FIELD):
        return False
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and bool(fields.keys() & OF_THE_BROKER) and not fields.keys() & OF_A_TOLD


def losses_of(path: Path) -> list[Loss]:
    """The losses an operator accepted: they may lie behind the gap they speak of. Of one id the first counts."""
    found: dict[str, Loss] = {}
    for message in messages(path):
        if isinstance(message, Message) and message.kind != "told" and b'"loss"' in message.raw:
            for ask in asks_of(message.raw) or []:
                first, last = ask.get("from_seq"), ask.get("to_seq")
                if ask.get("ask") == "loss" and isinstance(first, int) and isinstance(last, int) and 1 <= first <= last:
                    found.setdefault(str(ask.get("id")), Loss(message.seq, first, last))
    return list(found.values())


# --- the books --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Total:
    """A budget in one period, over all its meters."""

    unit: str
    settled: int = 0
    held: int = 0
    extra: int = 0


@dataclass(slots=True)
class Meter:
    """A budget in one period, for one value of its `each` label."""

    budget: str
    unit: str
    start: int
    end: int
    total: Total
    settled: int = 0
    held: int = 0
    extra: int = 0
    figure: int = 0
    holders: int = 0

    @property
    def used(self) -> int:
        return self.settled + self.held + self.extra

    def move(self, *, settled: int = 0, held: int = 0, extra: int = 0) -> None:
        self.settled += settled
        if settled < 0:  # the provider's figure still stands
            extra += max(0, self.figure - self.settled - self.extra)
        self.held += held
        self.extra += extra
        self.total.settled += settled
        self.total.held += held
        self.total.extra += extra


@dataclass(slots=True)
class Call:
    """A hold that is open, or has ended provisionally."""

    labels: dict[str, str]
    at: int
    state: str
    granted: Amounts
    expires_at: int = 0
    charge_on_lapse: bool = True
    stray: bool = False
    progress: Amounts = field(default_factory=dict)
    charged: Amounts = field(default_factory=dict)
    meters: list[Meter] = field(default_factory=list)
    gone: dict[str, str] = field(default_factory=dict)  # budgets whose meter was over already, and their units
    forget_at: int = 0

    def units(self) -> list[str]:
        return list(dict.fromkeys((*self.granted, *self.progress, *self.charged)))

    def takes(self) -> Amounts:
        if self.state != "open":
            return self.charged
        return {unit: max(self.granted.get(unit, 0), self.progress.get(unit, 0)) for unit in self.units()}

    def costs(self) -> Amounts:
        return self.progress if self.state == "open" else self.charged


class Calendar:
    """The wallet's days, as whole days of a zone on the wall. A zone that this machine does not know has no ends."""

    def __init__(self, zone: str) -> None:
        try:
            self._zone: ZoneInfo | None = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            self._zone = None

    @property
    def known(self) -> bool:
        return self._zone is not None

    def day_of(self, at: int) -> str:
        """The day in which a moment (ns) is; "" where nobody knows."""
        if self._zone is None:
            return ""
        return datetime.fromtimestamp(at // NS, self._zone).date().isoformat()

    def end_of(self, day: str) -> int | None:
        """The first nanosecond that is not of this day: the first second at which the wall shows a later date."""
        if self._zone is None or not day:
            return None
        following = date.fromisoformat(day) + timedelta(days=1)
        about = int(datetime(following.year, following.month, following.day, tzinfo=UTC).timestamp())
        before, behind = about - 36 * 3_600, about + 36 * 3_600
        while behind - before > 1:
            middle = (before + behind) // 2
            if datetime.fromtimestamp(middle, self._zone).date() >= following:
                behind = middle
            else:
                before = middle
        return behind * NS


class Books:
    """What the outcomes add up to, entry by entry. Raises `Wrong` at the first that does not."""

    def __init__(self, price_books: Iterable[str] = ()) -> None:
        self.at = self.horizon = 0
        self.plan: Document = {}
        self.digest = ""
        self.units: dict[str, str] = {}
        self.scales = dict(SCALES)
        self.generations: dict[str, int] = {}
        self.meters: dict[tuple[str, int, str | None, int], Meter] = {}
        self.totals: dict[tuple[str, str], Total] = {}
        self.open: dict[str, Call] = {}
        self.provisional: dict[str, Call] = {}
        self.due: list[tuple[int, str]] = []
        self.forgets: list[tuple[int, str]] = []
        self.outcomes: Counter[str] = Counter()
        self.price_books: Counter[str] = Counter()
        self.seals: list[tuple[str, int]] = []
        self.unknown_zones: set[str] = set()
        self.upto = 0
        self._day = ""
        self._day_ends: int | None = None
        self._calendar = Calendar("UTC")
        self._allowed = frozenset(price_books)
        self._entries = 0
        self._takes: dict[tuple[str, str], Callable[[Document, Document], None]] = {
            ("hold", "held"): self._held,
            ("renew", "held"): self._renewed,
            ("settle", "settled"): self._settled,
            ("settle", "stray"): self._stray,
            ("observe", "observed"): self._observed,
            ("adjust", "adjusted"): self._adjusted,
            ("plan", "planned"): self._planned,
            ("loss", "done"): self._lost,
        }

    def entry(self, asks: list[Document] | None, entry: Document) -> int:
        """Take in what was told of one message. The number of its asks."""
        self.at = entry["at"]
        self._begin()
        lapsed = deque(entry.get("lapsed", ()))
        self._seal_days(entry.get("sealed", []), lapsed)
        while lapsed:
            self._lapse(lapsed.popleft())
        self._nothing_else_due(len(entry.get("lapsed", ())))
        self._prune()
        self.upto = entry["seq"]
        out = entry.get("out", [])
        self.outcomes.update(outcome["outcome"] for outcome in out)
        if len(out) == 1 and (out[0]["outcome"], out[0]["id"], out[0].get("field")) == ("invalid", "", "message"):
            return 0  # the message as a whole
        if asks is None:
            raise Wrong("was answered, though it cannot be read")
        if len(out) != len(asks):
            raise Wrong(f"has {len(asks)} asks and {len(out)} outcomes")
        for ask, outcome in zip(asks, out, strict=True):
            self._outcome(ask, outcome)
        return len(asks)

    def _begin(self) -> None:
        if self.plan:
            self.horizon = max(self.horizon, self.at - self.plan.get("remember_s", 172_800) * NS)
        while self.forgets and self.forgets[0][0] <= self.at:
            forget_at, id = heapq.heappop(self.forgets)
            call = self.provisional.get(id)
            if call is not None and call.forget_at == forget_at:
                self._let_go(self.provisional.pop(id))

    def _prune(self) -> None:
        self._entries += 1
        if self._entries % PRUNE_EVERY == 0:
            over = [key for key, meter in self.meters.items() if meter.end <= self.horizon and not meter.holders]
            for key in over:
                del self.meters[key]

    def _outcome(self, ask: Document, out: Document) -> None:
        kind, said = ask["ask"], out["outcome"]
        if said not in ANSWERS[kind].split():
            raise Wrong(f"tells {said} of a {kind}")
        if out["id"] != (ask["hold"] if kind in ("settle", "renew") else ask["id"]):
            raise Wrong(f"tells a {kind} of another id")
        if kind == "hold" and ask.get("price_book"):
            self._priced(ask["price_book"])
        if said == "exhausted":
            self._exhausted(out, self.open.get(out["id"]) if kind == "renew" else None)
        elif (kind, said) in self._takes:
            self._takes[kind, said](ask, out)

    def _priced(self, name: str) -> None:
        self.price_books[name] += 1
        if self._allowed and name not in self._allowed:
            raise Wrong(f"holds by price book {name[:80]!r}, which is none of those given")

    # --- holds --------------------------------------------------------------------------------------------------------

    def _held(self, ask: Document, out: Document) -> None:
        labels, granted = ask.get("labels", {}), out["amounts"]
        self._granted(ask["options"][out["option"]], granted)
        if ask["id"] in self.open or ask["id"] in self.provisional:
            raise Wrong("grants a hold whose id is not free")
        if out["at"] != self.at or ask["by"] < self.at:
            raise Wrong("grants a hold at another moment, or after its caller had left")
        ttl_s = ask["ttl_s"] if ask.get("ttl_s") is not None else self.plan.get("ttl_s", 600)
        if out["expires_at"] != self.at + ttl_s * NS:
            raise Wrong("grants a hold for another time than was asked")
        told = out.get("budgets", {})
        if set(told) != self._matching(granted, labels):
            raise Wrong("grants a hold without one of the budgets that match it, or with another")
        on_lapse = ask.get("on_lapse") or self.plan.get("on_lapse", "charge")
        call = Call(labels, self.at, "open", granted, out["expires_at"], on_lapse == "charge")
        for name, line in told.items():
            meter = self._meter(name, line)
            if not line["start"] <= self.at < line["end"]:
                raise Wrong(f"counts a hold to a period of {name} that its moment is not in")
            if line["limit"] != self._limit(name, labels):
                raise Wrong(f"names another limit of {name} than the plan has")
            meter.holders += 1
            meter.move(held=granted[meter.unit])
            call.meters.append(meter)
            self._within(name, line, meter, more=granted[meter.unit])
        self.open[ask["id"]] = call
        heapq.heappush(self.due, (call.expires_at, ask["id"]))

    def _granted(self, option: Document, granted: Amounts) -> None:
        amounts, least = option["amounts"], option.get("least", {})
        if granted.keys() != amounts.keys():
            raise Wrong("grants other units than were asked")
        for unit, amount in granted.items():
            if not least.get(unit, 0 if least and amount < amounts[unit] else amounts[unit]) <= amount <= amounts[unit]:
                raise Wrong(f"grants an amount of {unit} that was not asked")
            if unit not in least and amount != amounts[unit]:
                raise Wrong(f"grants an amount of {unit} that was not asked")

    def _renewed(self, ask: Document, out: Document) -> None:
        call, granted = self._open(ask["hold"]), out["amounts"]
        if granted != {**call.granted, **ask.get("amounts", {})}:
            raise Wrong("renews a hold with other totals than were asked")
        if any(granted[unit] < amount for unit, amount in call.granted.items()):
            raise Wrong("lowers what a hold was granted")
        if out["expires_at"] < call.expires_at:
            raise Wrong("ends a hold earlier by renewing it")
        before = {id(meter): meter.held for meter in call.meters}
        self._become(call, granted=granted)
        for meter in call.meters:
            self._within(meter.budget, out["budgets"][meter.budget], meter, more=meter.held - before[id(meter)])
        if out["expires_at"] != call.expires_at:
            call.expires_at = out["expires_at"]
            heapq.heappush(self.due, (call.expires_at, ask["hold"]))

    def _within(self, budget: str, line: Document, meter: Meter, *, more: int) -> None:
        self._adds_up(budget, line, meter)
        if more > 0 and line["remaining"] < 0:
            raise Wrong(f"grants more of {budget} than its limit of {line['limit']:,} leaves")

    def _exhausted(self, out: Document, call: Call | None) -> None:
        name = out["budget"]
        meter = next((one for one in call.meters if one.budget == name), None) if call is not None else None
        if meter is None:
            meter = self.meters.get((name, self.generations[name], out.get("each"), out["resets_at"]))
        figures = (meter.settled, meter.held, meter.extra) if meter is not None else (0, 0, 0)
        if (out["settled"], out["held"], out["extra"]) != figures:
            raise Wrong(f"refuses with figures of {name} that the outcomes before it do not add up to")
        if out["remaining"] != out["limit"] - sum(figures):
            raise Wrong(f"refuses with a remaining of {name} that its figures do not leave")

    def _lapse(self, lapsed: Document) -> None:
        call = self.open.get(lapsed["hold"])
        if call is None or call.expires_at > self.at:
            raise Wrong("lapses a hold that is not open, or not due")
        expected = call.takes() if call.charge_on_lapse else {unit: call.progress.get(unit, 0) for unit in call.units()}
        if not _same(lapsed["charged"], expected):
            raise Wrong(f"lapses a hold at {lapsed['charged']}, where {expected} is due")
        del self.open[lapsed["hold"]]
        self._become(call, state="lapsed", charged=lapsed["charged"])
        self._keep(lapsed["hold"], call)

    def _nothing_else_due(self, lapsed: int) -> None:
        while self.due and lapsed < LAPSES_MAX and self.due[0][0] <= self.at:
            expires_at, id = heapq.heappop(self.due)
            call = self.open.get(id)
            if call is not None and call.expires_at == expires_at:
                raise Wrong("leaves a hold open whose time is over")

    # --- seals --------------------------------------------------------------------------------------------------------

    def _seal_days(self, seals: list[Document], lapsed: deque[Document]) -> None:
        """The days that are over, each sealed behind the lapses that were due before its end."""
        day, ends = self._day, self._day_ends
        for number, seal in enumerate(seals):
            if not self.plan or number >= SEALS_MAX:
                raise Wrong("seals a day that no plan has begun, or too many of them")
            if ends is not None and (seal["day"], seal["end"]) != (day, ends):
                raise Wrong(f"seals {seal['day']} until {seal['end']}, where {day} ends at {ends}")
            last = max((end for _, end in self.seals[-1:]), default=-1)
            if not last < seal["end"] <= self.at:
                raise Wrong(f"seals {seal['day']}, which is not over or was sealed before")
            while lapsed and self._expires_at(lapsed[0]) < seal["end"]:
                self._lapse(lapsed.popleft())
            self._compare(seal)
            day = self._calendar.day_of(seal["end"])
            ends = self._calendar.end_of(day)
        if ends is not None and ends <= self.at and len(seals) < SEALS_MAX:
            raise Wrong(f"does not seal {day}, which is over")
        if seals:
            self._begin_day()

    def _expires_at(self, lapsed: Document) -> int:
        call = self.open.get(lapsed["hold"])
        if call is None:
            raise Wrong("lapses a hold that is not open, or not due")
        return call.expires_at

    def _compare(self, seal: Document) -> None:
        """What the seal says against what everything before it adds up to."""
        day, upto, open_holds = seal["day"], seal["upto"], seal.get("open_holds", 0)
        if upto != self.upto:
            raise Wrong(f"seals {day} up to message {upto:,}, where the last before it is {self.upto:,}")
        if open_holds != len(self.open):
            raise Wrong(f"seals {day} with {open_holds:,} open holds, where there are {len(self.open):,}")
        expected = {}
        for (name, generation, each, _), meter in self.meters.items():
            budget = self.plan["budgets"].get(name, {})
            shared = budget and budget.get("each") is None and each is None and generation == self.generations[name]
            if shared and meter.start <= seal["end"] - 1 < meter.end:
                expected[name] = (self._limit(name, {}), meter.settled, meter.held, meter.extra)
        told = {
            name: (line["limit"], *(line.get(figure, 0) for figure in ("settled", "held", "extra")))
            for name, line in seal.get("budgets", {}).items()
        }
        if told != expected:
            raise Wrong(f"seals {day} with {told}, where the outcomes before it add up to {expected}")
        self.seals.append((day, seal["end"]))

    def _begin_day(self) -> None:
        self._day = self._calendar.day_of(self.at)
        self._day_ends = self._calendar.end_of(self._day)

    def _rezone(self, zone: str) -> None:
        """A plan is in force: the day begins, or goes on in another zone, where it may be over already."""
        first, self._calendar = not self.plan, Calendar(zone)
        if not self._calendar.known:
            self.unknown_zones.add(zone)
        if first:
            self._begin_day()
        else:
            ends = self._calendar.end_of(self._day)
            self._day_ends = max(ends, self.at) if ends is not None else None

    # --- settlements --------------------------------------------------------------------------------------------------

    def _settled(self, ask: Document, out: Document) -> None:
        id = ask["hold"]
        call = self.open.get(id) or self.provisional.get(id)
        if call is None:
            raise Wrong("settles a hold that is not open")
        state, charged = self._expected(call, ask)
        if out["state"] != state or not _same(out["charged"], charged):
            raise Wrong(f"charges {out['charged']} ({out['state']}), where what was asked makes {charged} ({state})")
        final, old, taken, costs = ask.get("final", True), call.units(), dict(call.takes()), dict(call.costs())
        back = {unit: taken.get(unit, 0) - charged.get(unit, 0) for unit in old}
        back = {unit: amount for unit, amount in back.items() if amount > 0} if final and state != "lapsed" else {}
        if not _same(out.get("released", {}), back):
            raise Wrong(f"releases {out.get('released', {})}, where {back} comes back")
        self._flagged(call, ask, out, old)
        bound = list(call.meters)
        self._bind_new(call, {unit: amount for unit, amount in charged.items() if unit not in old}, out)
        self._drop(call, {unit: amount - costs.get(unit, 0) for unit, amount in charged.items()}, out)
        if not final:
            more = {unit: amount for unit, amount in ask["amounts"].items() if amount > call.progress.get(unit, 0)}
            call.progress = call.progress if state == "open" else {**call.progress, **more}
        was_open = self.open.pop(id, None) is not None
        if state == "open":
            self.open[id] = call
            self._become(call, progress=out["charged"])
        else:
            self._become(call, state=state, charged=out["charged"])
        if state in ("settled", "corrected"):
            self.provisional.pop(id, None)
            self._let_go(call)
        elif was_open and state != "open":
            self._keep(id, call)
        for meter in bound:
            self._adds_up(meter.budget, out["left"][meter.budget], meter)
        for name, line in out.get("budgets", {}).items():
            self._adds_up(name, line, self._meter(name, line))

    def _expected(self, call: Call, ask: Document) -> tuple[str, Amounts]:
        """The state and the amounts that this settle makes of the call."""
        said, units, costs = ask.get("amounts", {}), call.units(), call.costs()
        if ask.get("release"):
            state = "settled" if call.state == "open" else "corrected"
            return state, {unit: call.progress.get(unit, 0) for unit in units}
        new = {unit: amount for unit, amount in said.items() if amount and unit not in units}
        raised = {unit: max(costs.get(unit, 0), said.get(unit, 0)) for unit in units} | new
        final, estimated = ask.get("final", True), ask.get("estimated", False)
        if not final:
            return call.state, raised
        if call.state == "open":
            takes = call.takes()
            return "estimated" if estimated else "settled", {unit: said.get(unit, takes[unit]) for unit in units} | new
        if estimated:
            return call.state, raised
        return "corrected", {unit: said.get(unit, call.charged.get(unit, 0)) for unit in units} | new

    def _flagged(self, call: Call, ask: Document, out: Document, old: list[str]) -> None:
        charged, said = out["charged"], ask.get("amounts", {})
        over = not call.stray and any(charged.get(u, 0) > call.granted.get(u, 0) for u in said if u in old)
        expected = {"overrun": over, "unheld": any(unit not in old for unit in charged)}
        for flag, flies in expected.items():
            if flies != (flag in out.get("flags", ())):
                raise Wrong(f"{'lacks' if flies else 'bears'} the flag {flag}")

    def _stray(self, ask: Document, out: Document) -> None:
        id, charged = ask["hold"], {unit: amount for unit, amount in ask.get("amounts", {}).items() if amount}
        if id in self.open or id in self.provisional:
            raise Wrong("takes a settlement for a stray whose hold is known")
        exact = ask.get("release") or (ask.get("final", True) and not ask.get("estimated", False))
        if not _same(out["charged"], charged) or out["state"] != ("stray" if exact else "estimated"):
            raise Wrong(f"charges {out['charged']} ({out['state']}) to a stray, where {charged} was asked")
        call = Call(ask.get("labels", {}), out["at"], "estimated", {}, stray=True)
        self._bind_new(call, charged, out)
        self._drop(call, charged, out)
        call.progress = {} if ask.get("final", True) else charged
        self._become(call, state=out["state"], charged=out["charged"])
        for name, line in out.get("budgets", {}).items():
            self._adds_up(name, line, self._meter(name, line))
        if exact:
            self._let_go(call)
        else:
            self._keep(id, call)

    def _bind_new(self, call: Call, new: Amounts, out: Document) -> None:
        """Units that the hold lacked go to the budgets that match its labels, whether their period is over or not."""
        told, dropped = out.get("budgets", {}), {drop["budget"] for drop in out.get("dropped", ())} - call.gone.keys()
        if told.keys() | dropped != self._matching(new, call.labels):
            raise Wrong("charges without one of the budgets that match, or to another")
        for name, line in told.items():
            meter = self._meter(name, line)
            meter.holders += 1
            call.meters.append(meter)
        call.gone.update({name: self.units[name] for name in dropped})

    def _drop(self, call: Call, changes: Amounts, out: Document) -> None:
        """What is charged to periods whose meters are over: named one by one, and counted to their totals."""
        expected = {name: changes[unit] for name, unit in call.gone.items() if changes.get(unit, 0)}
        if {drop["budget"]: drop["amount"] for drop in out.get("dropped", ())} != expected:
            raise Wrong("charges another amount to a period that is over than its unit costs")
        for drop in out.get("dropped", ()):
            self._total(drop["budget"], drop["period"]).settled += drop["amount"]

    # --- the operator's and the observers' asks -----------------------------------------------------------------------

    def _observed(self, ask: Document, out: Document) -> None:
        if (out["line"]["period"], out["line"].get("each")) != (ask["period"], ask.get("each")):
            raise Wrong("observes another period than was asked")
        meter = self._meter(ask["budget"], out["line"])
        meter.figure = max(meter.figure, ask["figure"])
        raised = max(0, meter.figure - meter.settled - meter.extra)
        if out["raised_by"] != raised:
            raise Wrong(f"raises {ask['budget']} by {out['raised_by']:,}, where the figure raises it by {raised:,}")
        meter.move(extra=raised)
        self._adds_up(ask["budget"], out["line"], meter)

    def _adjusted(self, ask: Document, out: Document) -> None:
        told: Document = out.get("line") or out["dropped"]
        if (told["period"], told.get("each")) != (ask["period"], ask.get("each")):
            raise Wrong("adjusts another period than was asked")
        if "line" in out:
            meter = self._meter(ask["budget"], told)
            meter.move(settled=ask["amount"])
            self._adds_up(ask["budget"], told, meter)
        elif (told["budget"], told["amount"]) != (ask["budget"], ask["amount"]):
            raise Wrong("adjusts something else than was asked")
        else:
            self._total(told["budget"], told["period"]).settled += told["amount"]

    def _lost(self, ask: Document, out: Document) -> None:
        raised = out.get("raised", [])
        if len(raised) != len(ask.get("used", [])):
            raise Wrong("raises other meters than the loss names")
        for known, told in zip(ask.get("used", []), raised, strict=True):
            meter = self._meter(told["budget"], told["line"])
            if (told["budget"], told["by"]) != (known["budget"], max(0, known["used"] - meter.used)):
                raise Wrong("raises a meter by something else than the loss says")
            meter.move(extra=told["by"])
            self._adds_up(told["budget"], told["line"], meter)

    def _planned(self, ask: Document, out: Document) -> None:
        if ask["replaces"] != self.digest:
            raise Wrong("puts a plan in force that was made from another than the one before")
        old, plan = self.plan.get("budgets", {}), ask["plan"]
        known, restarts = set(self.generations), []
        for name, budget in plan["budgets"].items():
            if name not in old or _nature(old[name]) != _nature(budget):
                self.generations[name] = self.generations.get(name, -1) + 1
                restarts += [name] if name in known else []
            if self.units.setdefault(name, budget["unit"]) != budget["unit"]:
                raise Wrong(f"changes the unit of {name}")
        if out.get("restarts", []) != restarts:
            raise Wrong(f"says that {out.get('restarts', [])} restart, where {restarts} do")
        self.scales.update(plan.get("units", {}))
        if not self.plan or self.plan.get("zone", "UTC") != plan.get("zone", "UTC"):
            self._rezone(plan.get("zone", "UTC"))
        self.plan, self.digest = plan, out["digest"]

    # --- what all of them need ----------------------------------------------------------------------------------------

    def _open(self, id: str) -> Call:
        if id not in self.open:
            raise Wrong("renews a hold that is not open")
        return self.open[id]

    def _matching(self, amounts: Iterable[str], labels: dict[str, str]) -> set[str]:
        return {
            name
            for name, budget in self.plan.get("budgets", {}).items()
            if budget["unit"] in amounts
            and all(labels.get(label) == value for label, value in budget.get("where", {}).items())
            and (budget.get("each") is None or budget["each"] in labels)
        }

    def _limit(self, name: str, labels: dict[str, str]) -> int:
        budget = self.plan["budgets"][name]
        special: Amounts = budget.get("limit_for", {})
        own = special.get(f"{budget.get('each')}={labels.get(budget.get('each'), '')}")
        if own is not None:
            return own
        found = [limit for rule, limit in special.items() if labels.get(rule.split("=", 1)[0]) == rule.split("=", 1)[1]]
        return max(found) if found else int(budget["limit"])

    def _meter(self, budget: str, line: Document) -> Meter:
        key = (budget, self.generations[budget], line.get("each"), line["end"])
        meter = self.meters.get(key)
        if meter is None:
            total = self._total(budget, line["period"])
            meter = self.meters[key] = Meter(budget, self.units[budget], line["start"], line["end"], total)
        return meter

    def _total(self, budget: str, period: str) -> Total:
        return self.totals.setdefault((budget, period), Total(self.units[budget]))

    def _adds_up(self, budget: str, line: Document, meter: Meter) -> None:
        if line["remaining"] != line["limit"] - meter.used:
            raise Wrong(
                f"says that {line['remaining']:,} of {budget} remain, where the outcomes before it leave "
                f"{line['limit'] - meter.used:,}"
            )

    def _become(self, call: Call, **changed: Any) -> None:
        """Change the call, and its meters by exactly the difference that makes."""
        took, cost = dict(call.takes()), dict(call.costs())
        for name, value in changed.items():
            setattr(call, name, value)
        takes, costs = call.takes(), call.costs()
        for meter in call.meters:
            unit = meter.unit
            settled = costs.get(unit, 0) - cost.get(unit, 0)
            meter.move(settled=settled, held=takes.get(unit, 0) - took.get(unit, 0) - settled)

    def _keep(self, id: str, call: Call) -> None:
        call.forget_at = self.at + self.plan.get("remember_s", 172_800) * NS
        self.provisional[id] = call
        heapq.heappush(self.forgets, (call.forget_at, id))

    def _let_go(self, call: Call) -> None:
        for meter in call.meters:
            meter.holders -= 1


def _nature(budget: Document) -> tuple[Any, ...]:
    """What makes another meter of a budget when it changes."""
    where = sorted(budget.get("where", {}).items())
    return budget.get("per", "day"), budget.get("zone", "UTC"), where, budget.get("each")


def _same(one: Amounts, other: Amounts) -> bool:
    """Zero and absent are the same."""
    return all(one.get(unit, 0) == other.get(unit, 0) for unit in {*one, *other})


# --- the record -------------------------------------------------------------------------------------------------------


class Record:
    """A stream as far as it was read: `take` its messages in order, then `end`."""

    def __init__(
        self, losses: list[Loss] | None = None, receipts: dict[int, str] | None = None, price_books: Iterable[str] = ()
    ) -> None:
        self.books = Books(price_books)
        self.chain, self.told_seq, self.upto, self.last = GENESIS, 0, 0, 0
        self.messages = self.tolds = self.entries = self.asks = self.void = self.excused = self.proven = 0
        self.foreign = 0
        self.first_ts = self.last_ts = 0
        self.header: Document = {}
        self._untold: deque[Message] = deque()
        self._losses = losses or []
        self._receipts = dict(receipts or {})
        self._chains: OrderedDict[int, str] = OrderedDict()
        self._clocks: dict[str, tuple[int, int, int, int]] = {}
        self._void_to = 0

    def take(self, message: Message) -> None:
        """The next message. Raises `Bad`."""
        if message.seq != self.last + 1:
            self._gap(message.seq)
        self.last, self.last_ts = message.seq, message.ts
        self.first_ts = self.first_ts or message.ts
        self.messages += 1
        if message.kind != "told":
            self._hear_clock(message)
            self._compare(message)
            self._untold.append(message)
        elif is_foreign(message.raw):
            self.foreign += 1
        elif message.seq <= self._void_to:
            self.void += 1
        else:
            self._told(message)
        wanted = self._receipts.get(message.seq)
        if wanted is not None:
            self._prove(message.seq, wanted)

    def _gap(self, seq: int) -> None:
        first, last = self.last + 1, seq - 1
        if seq <= self.last:
            raise Bad(first, f"sequence {first:,} is expected here, and {seq:,} stands twice or out of order")
        lost = next((loss for loss in self._losses if loss.first <= first and last <= loss.last), None)
        if lost is None:
            raise Bad(first, f"sequences {first:,} to {last:,} are missing")
        self._void_to = max(self._void_to, min(lost.last, lost.seq - 1))
        for receipt in [seq for seq in self._receipts if first <= seq <= last]:
            self._excuse(receipt)

    def _hear_clock(self, message: Message) -> None:
        if b'"clock"' not in message.raw:
            return
        for ask in asks_of(message.raw) or []:
            start, end = ask.get("from"), ask.get("to")
            if ask.get("ask") == "clock" and isinstance(start, int) and isinstance(end, int) and start < end:
                self._clocks.setdefault(str(ask.get("id")), (message.seq, self.upto, start, end))

    def _moment(self, message: Message) -> int:
        """When a message is decided: at its stamp, never before the one before it; at that where a stamp is wrong."""
        at = self.books.at
        for seq, upto, start, end in self._clocks.values():
            if upto < message.seq < seq and start <= message.ts < end:
                return at
        return max(at, message.ts)

    # --- receipts -----------------------------------------------------------------------------------------------------

    def _compare(self, message: Message) -> None:
        """What the sender of an ask had been told before."""
        found = RECEIPT.fullmatch(message.seen)
        if found is None:
            return
        told, chain = int(found[1]), found[2]
        oldest = next(iter(self._chains), 0)
        if told < oldest or self._chains.get(told) == chain or self._is_lost(told):
            return
        raise Bad(message.seq, f"its sender had been told something at sequence {told:,} that does not stand there")

    def _prove(self, seq: int, wanted: str) -> None:
        if self._chains.get(seq) == wanted:
            self.proven += 1
            del self._receipts[seq]
        elif self._is_lost(seq):
            self._excuse(seq)
        elif seq in self._chains:
            raise Bad(seq, "bears another chain than the receipt: this is not the record from which it was given")
        else:
            raise Bad(seq, "is no told that counts, though there is a receipt for it")

    def _is_lost(self, seq: int) -> bool:
        return any(loss.first <= seq <= loss.last for loss in self._losses)

    def _excuse(self, seq: int) -> None:
        self.excused += 1
        self._receipts.pop(seq)

    # --- tolds --------------------------------------------------------------------------------------------------------

    def _told(self, message: Message) -> None:
        seq, raw = message.seq, message.raw
        body, tail = raw[:-TAIL_BYTES], raw[-TAIL_BYTES:]
        written = tail[len(CHAIN_FIELD) : -2]
        if not (tail.startswith(CHAIN_FIELD) and tail.endswith(b'"}') and re.fullmatch(rb"[0-9a-f]{64}", written)):
            raise Bad(seq, "is no told: it does not end in its chain", since=self._since)
        covered = self._covered(message)
        running = blake2b(self.chain, digest_size=32)
        for ask in covered:
            running.update(ask.seq.to_bytes(8, "big") + ask.ts.to_bytes(8, "big") + ask.raw)
        running.update(body)
        if running.hexdigest().encode() != written:
            first = covered[0].seq
            raise Bad(seq, f"the chain does not follow: something in {first:,} to {seq:,} was changed", since=first)
        for ask, entry in zip(covered, json.loads(raw)["told"], strict=True):
            self._entry(ask, entry, seq)
        self.chain, self.told_seq, self.upto = running.digest(), seq, covered[-1].seq
        self.tolds += 1
        self._chains[seq] = written.decode()
        if len(self._chains) > CHAINS_KEPT:
            self._chains.popitem(last=False)

    @property
    def _since(self) -> int | None:
        return self._untold[0].seq if self._untold else None

    def _covered(self, message: Message) -> list[Message]:
        try:
            told = json.loads(message.raw)
            n, upto, named = told["n"], told["upto"], [entry["seq"] for entry in told["told"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Bad(message.seq, "is no told that can be read", since=self._since) from error
        waiting = [ask.seq for _, ask in zip(range(n), self._untold, strict=False)] if type(n) is int else []
        if not waiting or waiting != named or len(waiting) != n or waiting[-1] != upto:
            raise Bad(message.seq, "does not cover exactly the ask messages before it", since=self._since)
        return [self._untold.popleft() for _ in range(n)]

    def _entry(self, ask: Message, entry: Document, told: int) -> None:
        try:
            at = self._moment(ask)
            if entry["at"] != at:
                raise Wrong(f"is decided at {entry['at']}, where its moment is {at}")
            self.asks += self.books.entry(asks_of(ask.raw), entry)
        except Wrong as wrong:
            raise Bad(ask.seq, f"{wrong} (told at {told:,})", told=told) from wrong
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise Bad(ask.seq, f"what was told of it cannot be understood (told at {told:,})", told=told) from error
        self.entries += 1

    def end(self) -> None:
        """All was read. Raises `Bad` where more is known to have been there."""
        missing = min(self._receipts, default=None)
        if missing is not None and self._is_lost(missing):
            self._excuse(missing)
            return self.end()
        if missing is not None:
            raise Bad(self.last + 1, f"the record ends before it, though there is a receipt for {missing:,}")
        last = self.header.get("last_seq")
        if isinstance(last, int) and last != self.last:
            raise Bad(self.last + 1, f"the file says that it goes up to {last:,}, and ends before")
        return None

    def summary(self) -> Document:
        """What was proved, as data."""
        books = self.books
        return {
            "ok": True,
            "wallet": self.header.get("wallet"),
            "messages": self.messages,
            "tolds": self.tolds,
            "entries": self.entries,
            "asks": self.asks,
            "untold": len(self._untold),
            "from": _utc(self.first_ts),
            "to": _utc(self.last_ts),
            "told": self.told_seq,
            "chain": self.chain.hex(),
            "receipts": self.proven,
            "receipts_in_a_loss": self.excused,
            "losses": [[loss.first, loss.last] for loss in self._losses],
            "void_tolds": self.void,
            "foreign": self.foreign,
            "outcomes": dict(sorted(books.outcomes.items())),
            "price_books": dict(books.price_books),
            "seals": len(books.seals),
            "unknown_zones": sorted(books.unknown_zones),
            "open": len(books.open),
            "provisional": len(books.provisional),
            "totals": [self._total(*key, total) for key, total in sorted(books.totals.items())],
        }

    def _total(self, budget: str, period: str, total: Total) -> Document:
        scale = self.books.scales[total.unit]
        figures = {"settled": total.settled, "held": total.held, "extra": total.extra}
        return {
            "budget": budget,
            "period": period,
            "unit": total.unit,
            **figures,
            **{f"{name}_text": _decimal(amount, scale) for name, amount in figures.items()},
        }


def verify(path: Path, receipts: dict[int, str] | None = None, price_books: Iterable[str] = ()) -> Record:
    """Read the whole file and prove it. Raises `Bad`, and `OSError` if there is no such file."""
    record = Record(losses_of(path), receipts, price_books)
    for message in messages(path):
        if isinstance(message, Message):
            record.take(message)
        else:
            record.header = message
    record.end()
    return record


# --- the command ------------------------------------------------------------------------------------------------------


def _utc(ns: int) -> str:
    whole = datetime.fromtimestamp(ns // NS, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{ns % NS:09d}Z"


def _decimal(amount: int, scale: int) -> str:
    digits = str(abs(amount)).rjust(scale + 1, "0")
    whole, fraction = (digits[:-scale], digits[-scale:].rstrip("0")) if scale else (digits, "")
    return ("-" if amount < 0 else "") + whole + (f".{fraction}" if fraction else "")


def _plain(text: object) -> str:
    return "".join(each if each.isprintable() else "?" for each in str(text))


def _say(found: Document) -> None:
    print(f"{found['messages']:,} messages from {found['from']} to {found['to']}, every sequence once and in order.")
    print(f"{found['tolds']:,} tolds cover {found['entries']:,} ask messages with {found['asks']:,} asks.")
    print(f"The chain holds from the first message to the told at {found['told']:,}: {found['chain']}")
    print("outcomes: " + _plain(", ".join(f"{name} {count:,}" for name, count in found["outcomes"].items())))
    for total in found["totals"]:
        figures = ", ".join(f"{name} {total[name + '_text']}" for name in ("settled", "held", "extra"))
        print(_plain(f"{total['budget']} {total['period']}: {figures} {total['unit']}"))
    if found["seals"]:
        print(f"{found['seals']:,} days are sealed, each with what the outcomes before its end add up to.")
    for zone in found["unknown_zones"]:
        print(_plain(f"When days end in {zone} is not known here: their ends are those that the seals say."))
    if found["receipts"]:
        print(f"{found['receipts']:,} receipts stand on it.")
    for first, last in found["losses"]:
        print(f"An operator went on without sequences {first:,} to {last:,}: what was lost cannot be proved.")
    if found["foreign"]:
        print(f"{found['foreign']:,} answers of the broker lie among the tolds: they count for nothing.")
    if found["untold"]:
        print(f"{found['untold']:,} ask messages at the end have no told yet: nothing covers them.")


def _receipt(written: str) -> tuple[int, str]:
    found = RECEIPT.fullmatch(written)
    if found is None:
        raise argparse.ArgumentTypeError("expected SEQ:CHAIN, a sequence and 64 hexadecimal digits")
    return int(found[1]), found[2]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(prog="verify.py", description="Prove the record of a wallet from one file.")
    parser.add_argument("file", type=Path, help="what `purse export --raw FILE` wrote")
    parser.add_argument("--receipt", type=_receipt, action="append", default=[], metavar="SEQ:CHAIN",
                        help="what somebody was told: it must stand there (repeatable)")  # fmt: skip
    parser.add_argument("--price-book", action="append", default=[], metavar="NAME",
                        help="holds that name a price book must name this one (repeatable)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    if len(dict(given.receipt)) < len(set(given.receipt)):
        parser.error("two receipts for one sequence: at least one of them is not of this record")
    try:
        found = verify(given.file, dict(given.receipt), given.price_book).summary()
    except OSError as error:
        parser.error(f"cannot read the file ({error.strerror})")
    except Bad as bad:
        document = {"ok": False, "seq": bad.seq, "why": bad.why, "since": bad.since, "told": bad.told}
        print(json.dumps(document) if given.json else f"sequence {bad.seq:,}: {_plain(bad.why)}")
        return 1
    if given.json:
        print(json.dumps(found))
    else:
        _say(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
