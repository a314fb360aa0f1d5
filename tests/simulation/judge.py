"""What must be so once a world has calmed down, and what happened in it.

The record is judged by the naive auditor, message by message; what callers heard, by the record; engines and projector,
by what the record folds to. Nothing here looks at how any of them work.
"""

from __future__ import annotations

from collections import Counter, deque

from auditor import Auditor, differences
from integration.rig import Audit, audit
from simulation.callers import on_record
from simulation.world import WALLET, World, documents

from engine.core.messages import Again, AnyAsk, AnyOutcome, Entry, Held, Hold, Settle, Settled, Stray
from engine.core.tell import read
from engine.core.wallet import NS
from engine.recorded import Recorded
from projector.projection import Projection

WRONG_LAST = (10071, 10164)
SAID = {
    ("engine", "restored"): "snapshot restored",
    ("projector", "restored"): "a projector restored its snapshot",
    ("engine", "snapshot_skipped"): "a snapshot was skipped",
    ("client", "spool_tail_cut"): "the spool was torn",
}
"""What programs report of themselves, and how it is counted."""


def live(world: World) -> Counter[str]:
    """Run the world and judge it; what was seen in it. A failure says how to see it again."""
    try:
        return Judge(world.run()).judge()
    except BaseException as error:
        befell = "\n".join(world.trace)
        raise AssertionError(f"seed {world.seed}: {error}\n{befell}\nagain: {world.again}") from error


class Judge:
    """Holds one world against what was promised. `seen` counts what happened in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.record = world.record
        self.asks: dict[int, list[AnyAsk] | None] = {}
        for stored in self.record:
            if stored.kind != "told":
                message = read(stored.data)
                self.asks[stored.seq] = message.asks if message is not None else None
        self.seen: Counter[str] = Counter(world.storm.seen) + Counter(world.disk.seen)

    def judge(self) -> Counter[str]:
        """Raises `AssertionError` with what is wrong."""
        assert not self.world.bugs, self.world.bugs
        self._every_told_claimed_its_place()
        found = audit(self.record, WALLET)  # the chain is whole, every message was told once
        assert not found.untold
        self._told_as_predicted(found)
        self._heard_is_recorded(found)
        self._asked_is_meant()
        self._no_hold_is_decided_twice(found)
        self._who_left_pays_nothing(found)
        self._what_was_settled_counts_once(found)
        self._all_agree(found)
        self._look_around(found)
        return self.seen

    def _every_told_claimed_its_place(self) -> None:
        newest = 0
        for append in self.world.appends:
            if append.subject.endswith("told") and append.seq:
                assert append.after == newest, f"the told at {append.seq} claimed the place after {append.after}"
                newest = append.seq

    def _told_as_predicted(self, found: Audit) -> None:
        auditor = Auditor()
        for stored in self.record:
            if stored.kind == "told":
                continue
            expected = auditor.predict(stored.seq, stored.ts, self.asks[stored.seq])
            wrong = differences(expected, found.entries[stored.seq])
            assert not wrong, f"message {stored.seq}: {wrong}"
        mine, theirs = auditor.meters(), found.wallet.meters()
        assert mine == theirs, f"meters: expected {mine}, are {theirs}"

    def _heard_is_recorded(self, found: Audit) -> None:
        """Every outcome that a caller heard stands on the record, under the receipt that came with it."""
        tolds = {stored.seq: Recorded.read(stored) for stored in self.record if stored.kind == "told"}
        for heard in self.world.notes.heard:
            answered = heard.answered
            entry = found.entries.get(answered.seq)
            assert entry is not None, f"{heard} was never told"
            assert entry.at == answered.at, heard
            assert on_record(answered.outcome) in _outcomes(self.asks[answered.seq], entry, heard.ask), heard
            receipt = tolds.get(answered.told)
            assert receipt is not None, f"{heard}: no told stands at {answered.told}"
            assert receipt.chain.hex() == answered.chain, f"{heard}: the chain is {receipt.chain.hex()}"
            assert answered.seq in {one.seq for one in receipt.told.told}, f"{heard}: told elsewhere"

    def _asked_is_meant(self) -> None:
        """Nothing is on the stream that nobody asked."""
        notes = self.world.notes
        meant = {str(handed.ask) for handed in notes.settles}
        for asks in self.asks.values():
            for ask in asks or ():
                if isinstance(ask, Hold):
                    assert ask.id in notes.holds, f"nobody asked {ask}"
                elif isinstance(ask, Settle) and not (ask.release and ask.by is not None):
                    assert str(ask) in meant, f"nobody settled {ask}"

    def _no_hold_is_decided_twice(self, found: Audit) -> None:
        """An id is held once, or again after its caller had given it up for nothing."""
        held: set[str] = set()
        for seq, asks in self.asks.items():
            for ask, outcome in zip(asks or (), found.entries[seq].out, strict=False):
                if isinstance(outcome, Held) and outcome.n == 0:
                    assert outcome.id not in held, f"{outcome.id} is held a second time at {seq}"
                    held.add(outcome.id)
                elif isinstance(ask, Settle) and ask.release and ask.by and isinstance(outcome, Settled):
                    held.discard(ask.hold)

    def _who_left_pays_nothing(self, found: Audit) -> None:
        """A hold nobody heard of is taken back, if its client lived on."""
        wallet = found.wallet
        for id, process in self.world.notes.left.items():
            if process.name not in self.world.survivors or id in self.world.notes.allowed:
                continue
            assert id not in wallet.open, f"{id} was left and is still open"
            record = wallet.provisional.get(id) or wallet.closed.get(id, wallet.at)
            assert record is None or not any(record.charged.values()), f"{id} was left and is charged {record.charged}"

    def _what_was_settled_counts_once(self, found: Audit) -> None:
        """However often it was sent, by its client or by who adopted it: one outcome charges it, the others say so."""
        counted: Counter[tuple[str, bool]] = Counter()
        for seq, asks in self.asks.items():
            for ask, outcome in zip(asks or (), found.entries[seq].out, strict=False):
                if isinstance(ask, Settle) and ask.final and isinstance(outcome, Settled | Stray):
                    counted[ask.hold, outcome.state == "estimated"] += 1
                elif isinstance(outcome, Held) and outcome.n == 0:
                    counted[outcome.id, False] = 0  # it was given up before, for nothing
        twice = [hold for (hold, estimated), count in counted.items() if count > 1 and not estimated]
        assert not twice, f"settled twice: {twice}"

    def _all_agree(self, found: Audit) -> None:
        world, dump = self.world, found.wallet.dump()
        for slot in world.engine_slots:
            engine = world.engines[slot.process.name]
            engine.wallet.check()
            assert engine.wallet.dump() == dump, f"{slot.name} has another wallet"
        self._projector_agrees(dump)

    def _projector_agrees(self, dump: bytes) -> None:
        """What it has, what it wrote, and what another makes of the record from its beginning are the same."""
        world = self.world
        assert world.projector is not None
        live, rebuilt = world.projector.projection, self._rebuilt()
        assert live.wallet.dump() == dump, "the projector has another wallet"
        assert rebuilt.wallet.dump() == dump, "a projector that begins anew has another wallet"
        assert live.totals == rebuilt.totals, "the projector has other totals than one that begins anew"
        assert world.written() == documents(rebuilt), "the documents in the bucket are others"

    def _rebuilt(self) -> Projection:
        projection, waiting = Projection(WALLET), deque[int]()
        for stored in self.record:
            if stored.kind != "told":
                waiting.append(stored.seq)
                continue
            for entry in Recorded.read(stored).told.told:
                projection.fold(seq=waiting[0], asks=self.asks[waiting.popleft()], entry=entry)
        return projection

    # --- what happened ------------------------------------------------------------------------------------------------

    def _look_around(self, found: Audit) -> None:
        seen, speaker = self.seen, ""
        for line in self.world.said:
            whose = line["process"].rstrip("-0123456789")
            if what := SAID.get((whose, line["event"])):
                seen[what] += 1
            if line["event"] == "spool_adopted":  # by now it is all on the stream
                seen["spool drained"] += line["asks"]
        for told in found.tolds:
            seen["takeover"] += bool(speaker) and told.engine != speaker
            speaker = told.engine
        for append in self.world.appends:
            seen["fenced engine"] += (
                append.subject.endswith("told") and append.code in WRONG_LAST and append.after is not None
            )
            seen["duplicate inside the window"] += append.duplicate
            seen["duplicate beyond the window"] += append.repeated_name
        expiries: dict[str, Held] = {}
        for seq, asks in self.asks.items():
            entry = found.entries[seq]
            seen["a day rolled with open holds"] += self._rolled(entry, expiries)
            for lapsed in entry.lapsed:
                expiries.pop(lapsed.hold, None)
                seen["lapsed"] += 1
            for ask, outcome in zip(asks or (), entry.out, strict=False):
                self._look_at(ask, outcome, entry, expiries)

    def _rolled(self, entry: Entry, open_: dict[str, Held]) -> int:
        days = {held.at // (86_400 * NS) for held in open_.values()}
        return int(any(day < entry.at // (86_400 * NS) for day in days))

    def _look_at(self, ask: AnyAsk, outcome: AnyOutcome, entry: Entry, open_: dict[str, Held]) -> None:
        seen = self.seen
        seen[f"told {outcome.__struct_config__.tag}"] += 1
        if isinstance(outcome, Held):
            open_[outcome.id] = outcome
        if isinstance(ask, Hold) and isinstance(outcome, Again):
            seen["asked again"] += 1
        if not isinstance(ask, Settle):
            return
        seen["given up"] += ask.release and ask.by is not None
        if isinstance(outcome, Settled):
            seen["overrun"] += "overrun" in outcome.flags
            seen["late settle"] += "late" in outcome.flags
            same = any(lapsed.hold == ask.hold for lapsed in entry.lapsed)
            seen["expiry beat settle in the same tick"] += same
            if outcome.state != "open" and ask.hold in open_:
                held = open_.pop(ask.hold)
                seen["settle beat expiry in the same tick"] += 0 < held.expires_at - entry.at <= NS


def _outcomes(asks: list[AnyAsk] | None, entry: Entry, ask: AnyAsk) -> list[AnyOutcome]:
    """What the entry says to asks like this one; only the deadline of a hold may differ."""
    if asks is None:
        return entry.out
    return [out for one, out in zip(asks, entry.out, strict=True) if one == ask or _same_hold(one, ask)]


def _same_hold(one: AnyAsk, other: AnyAsk) -> bool:
    return isinstance(one, Hold) and isinstance(other, Hold) and one.id == other.id
