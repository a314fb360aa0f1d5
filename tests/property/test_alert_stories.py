"""Alerts follow from the record alone: put down anywhere and taken up again, the fold raises the same."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
from recorded_stories import story

from engine.core import restore
from engine.core.tell import fold
from engine.core.wallet import Wallet
from projector.alerts.alert import Alert
from projector.alerts.fold import AlertFold, State
from projector.alerts.rules import Burst, Rules, Runaway
from projector.replay import Answered, Replay

STORIES, STEPS = 40, 80
WANTED = {"percent", "refused", "lapse", "conflict", "guard", "loss", "burst"}


def rules_for(answered: list[Answered], random: Random) -> Rules:
    """Rules for the budgets that the story's first plan shares."""
    wallet = Wallet("main")
    take(wallet, AlertFold(Rules()), answered[0])
    assert wallet.plan is not None
    shared = [name for name, budget in wallet.plan.budgets.items() if budget.each is None]
    return Rules(
        percents=tuple(sorted(random.sample(range(1, 120), 5))),
        bursts=tuple(Burst(budget=name, amount="0.000001", within_s=random.choice((1, 60, 3600))) for name in shared),
        runaways=tuple(Runaway(budget=name) for name in shared),
    )


def take(wallet: Wallet, alerts: AlertFold, answered: Answered) -> None:
    touched = alerts.before(wallet, answered.asks, answered.entry)
    stored = answered.stored
    fold(wallet, seq=stored.seq, ts=stored.ts, asks=answered.asks, entry=answered.entry)
    alerts.after(wallet, answered.asks, answered.entry, touched)


def raised(answered: list[Answered], rules: Rules, *, cuts: set[int]) -> list[Alert]:
    """What the fold raises that is put down and taken up again before each of these messages."""
    wallet, alerts = Wallet("main"), AlertFold(rules)
    for number, one in enumerate(answered):
        if number in cuts:
            state = msgspec.json.decode(msgspec.json.encode(alerts.state()), type=State)
            wallet = restore.load(wallet.dump())
            alerts = AlertFold(rules, state, wallet)
        take(wallet, alerts, one)
    return list(alerts.raised.values())


def test_whatever_happens_alerts_follow_from_the_record_and_from_no_restart() -> None:
    seen = Counter[str]()
    for seed in range(STORIES):
        random, reading = Random(seed), Replay()
        answered = [one for stored in story(seed, steps=STEPS) for one in reading.take(stored)]
        rules = rules_for(answered, random)
        whole = raised(answered, rules, cuts=set())
        for share in (0.05, 0.5):
            cuts = {number for number in range(1, len(answered)) if random.random() < share}
            assert raised(answered, rules, cuts=cuts) == whole, f"story {seed}, put down before {sorted(cuts)}"
        assert [alert.at for alert in whole] == sorted(alert.at for alert in whole)
        seen.update(alert.rule for alert in whole)
    assert WANTED - set(seen) == set(), seen
