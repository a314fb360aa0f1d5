"""The naive auditor on settles: what did the call cost? Never refused. Written from the rules, not from the engine."""

from __future__ import annotations

from property.naive_books import Books, Bound, Call, invalid, is_amount, is_id, labels_are_sound

from engine.core import limits
from engine.core.messages import (
    Again,
    Amounts,
    AnyOutcome,
    Conflict,
    Dropped,
    Flag,
    Forgotten,
    Left,
    Settle,
    Settled,
    Stray,
)  # fmt: skip

FLAGS: tuple[Flag, ...] = ("late", "overrun", "unheld", "unreported", "corrected", "estimated")


class SettleRules(Books):
    """Predicts what is told of a settle, whatever became of its hold."""

    def _settle_is_sound(self, ask: Settle) -> bool:
        return (
            is_id(ask.hold)
            and (ask.id == "" or is_id(ask.id))
            and all(unit in self.units and is_amount(amount) for unit, amount in ask.amounts.items())
            and len(ask.amounts) <= limits.ASK_UNITS_MAX
            and labels_are_sound(ask.labels)
            and all(moment is None or is_amount(moment) for moment in (ask.held_at, ask.by))
            and bool(ask.amounts) != ask.release
            and not (ask.release and (not ask.final or ask.estimated))
        )

    def settle(self, ask: Settle) -> AnyOutcome:
        if not self._settle_is_sound(ask):
            return invalid(ask.hold)
        own_id = "" if ask.id == f"{ask.hold}:s" else ask.id
        call = self.calls.get(ask.hold)
        if own_id in self.settle_ids and self.settle_ids[own_id][0] != ask.hold:
            return Conflict(id=ask.hold, field="id")
        outcome = self._stray(ask) if call is None else self._settle_known(ask, call)
        if own_id and isinstance(outcome, Settled | Stray):
            self.settle_ids.setdefault(own_id, (ask.hold, self.remembered_until()))
        return outcome

    def _settle_known(self, ask: Settle, call: Call) -> AnyOutcome:
        given_up = ask.release and ask.by is not None and ask.by < call.by
        if call.state != "open" and not call.provisional:
            return self._settle_closed(ask, call)
        if given_up:
            return self._again(call)
        if ask.final and not ask.estimated:
            return self._settle_exactly(ask, call)
        if call.state == "open" and ask.final:
            return self._estimate(ask, call)
        return self._raise(ask, call)

    def _again(self, call: Call) -> Again:
        return Again(id=call.id, first=call.last, state=call.state)

    def _settle_closed(self, ask: Settle, call: Call) -> AnyOutcome:
        if ask.release and ask.by is not None:
            if call.given_up_by is not None:
                call.given_up_by = max(call.given_up_by, ask.by)
            return self._again(call)
        if not ask.final:
            return self._again(call)
        said = call.progress if ask.release else ask.amounts
        compare = {*said, *call.charged} if ask.release else set(said)
        if all(said.get(unit, 0) == call.charged.get(unit, 0) for unit in compare):
            return self._again(call)
        return Conflict(id=call.id, field="amounts", charged=dict(call.charged))

    def _settle_exactly(self, ask: Settle, call: Call) -> Settled:
        """The exact end of an open hold, or the one correction of a provisional charge."""
        before = dict(call.charged) if call.provisional else call.worst()
        unsaid = [unit for unit in call.grant if unit not in ask.amounts and not ask.release]
        amounts = call.reported() if ask.release else {**ask.amounts, **{unit: before[unit] for unit in unsaid}}
        flags = self._flags(ask, call, ask.amounts)
        flags += ["unreported"] if unsaid else []
        flags += ["corrected"] if call.provisional else []
        bounds, dropped = self._charge(call, amounts)
        if ask.release:
            call.given_up_by = ask.by
        self.end(call, "corrected" if call.provisional else "settled")
        return self._settled_outcome(call, before, bounds, dropped, flags)

    def _estimate(self, ask: Settle, call: Call) -> Settled:
        before = call.worst()
        unsaid = [unit for unit in call.grant if unit not in ask.amounts]
        flags = self._flags(ask, call, ask.amounts)
        flags += ["unreported"] if unsaid else []
        flags += ["estimated"]
        bounds, dropped = self._charge(call, {**ask.amounts, **{unit: before[unit] for unit in unsaid}})
        self.end(call, "estimated")
        return self._settled_outcome(call, before, bounds, dropped, flags)

    def _raise(self, ask: Settle, call: Call) -> AnyOutcome:
        """Progress of an open hold; after a lapse or an estimate, amounts that only go up."""
        if call.state == "estimated" and call.ask is not None and not ask.final:
            return self._again(call)
        higher = {unit: amount for unit, amount in ask.amounts.items() if amount > call.charged.get(unit, 0)}
        known = dict(call.progress)
        if not ask.final:
            self._progress(ask, call)
        if not higher and call.progress == known:
            return self._again(call)
        reached = {unit: max(amount, call.charged.get(unit, 0)) for unit, amount in ask.amounts.items()}
        flags = self._flags(ask, call, reached)
        flags += ["estimated"] if ask.final else []
        bounds, dropped = self._charge(call, higher)
        call.last = self.seq
        return self._settled_outcome(call, {}, bounds, dropped, flags)

    @staticmethod
    def _progress(ask: Settle, call: Call) -> None:
        for unit, amount in ask.amounts.items():
            if amount > call.progress.get(unit, 0):
                call.progress[unit] = amount

    def _flags(self, ask: Settle, call: Call, charged: Amounts) -> list[Flag]:
        flags: list[Flag] = []
        named = [unit for unit in ask.amounts if unit in call.grant and call.ask is not None]
        if any(charged[unit] > call.grant[unit] for unit in named):
            flags.append("overrun")
        if self.due(call) or call.state == "lapsed":
            flags.append("late")
        if any(unit not in call.grant and amount > 0 for unit, amount in ask.amounts.items()):
            flags.append("unheld")
        return flags

    def _charge(self, call: Call, amounts: Amounts) -> tuple[list[Bound], list[Dropped]]:
        """Set what the call has cost. Units it lacked bind it to more meters, which are returned."""
        new, rises = [], {}
        for unit, amount in amounts.items():
            if unit not in call.grant:
                if amount == 0:
                    continue
                call.grant[unit] = 0
                new += self.bind(unit, call.labels, call.at)
            rises[unit] = amount - call.charged.get(unit, 0)
            call.charged[unit] = amount
        call.bounds += new
        dropped = [
            Dropped(budget=bound.budget, period=bound.key[3], amount=rises[bound.unit], each=bound.key[2])
            for bound in call.bounds if bound.gone and rises.get(bound.unit, 0) != 0
        ]  # fmt: skip
        return new, dropped

    def _settled_outcome(
        self, call: Call, before: Amounts, new: list[Bound], dropped: list[Dropped], flags: list[Flag]
    ) -> Settled:
        self.raise_extras()
        lines = {bound.budget: self.line(bound, call.labels) for bound in new if not bound.gone}
        left = {}
        for bound in call.bounds:
            if not bound.gone and bound not in new:
                line = self.line(bound, call.labels)
                left[bound.budget] = Left(limit=line.limit, remaining=line.remaining)
        released = {unit: amount - call.charged.get(unit, 0) for unit, amount in before.items()}
        return Settled(
            id=call.id, state=call.state, charged=dict(call.charged), left=left, budgets=lines, dropped=dropped,
            released={unit: amount for unit, amount in released.items() if amount > 0},
            flags=[flag for flag in FLAGS if flag in flags],
        )  # fmt: skip

    def _stray(self, ask: Settle) -> AnyOutcome:
        if ask.held_at is not None and ask.held_at <= self.horizon:
            return Forgotten(id=ask.hold)
        at = ask.held_at if ask.held_at is not None and ask.held_at <= self.at else self.at
        call = Call(
            id=ask.hold, at=at, first=self.seq, last=self.seq, state="open", labels=ask.labels, grant={}, charged={},
            bounds=[], given_up_by=ask.by if ask.release else None,
        )  # fmt: skip
        self.calls[ask.hold] = call
        self.history.append(call)
        bounds, dropped = self._charge(call, ask.amounts)
        if not ask.final:
            self._progress(ask, call)
        self.end(call, "stray" if ask.final and not ask.estimated else "estimated")
        lines = {bound.budget: self.line(bound, call.labels) for bound in bounds if not bound.gone}
        charged = dict(call.charged)
        return Stray(id=call.id, state=call.state, charged=charged, at=at, budgets=lines, dropped=dropped)
