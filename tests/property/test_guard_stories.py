"""Few callers, many holds, guards that go off early: stories in which every verdict is predicted by the auditor."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
from property.sightings import sightings
from property.trial import Trial

from engine.core import restore
from engine.core.messages import AnyAsk, ApplyPlan, Entry, Freeze, Hold, Option, Renew, Restore, Revoke, Settle, Thaw
from engine.core.plan import Budget, Guard, Plan, digest
from engine.core.tell import fold, tell
from engine.core.wallet import Wallet

NOON = 1_796_040_000_000_000_000  # 2026-11-30 12:00 UTC
SECOND = 1_000_000_000
STORIES, MESSAGES = 60, 90

WANTED = {
    "cooling", "revoked", "frozen", "a guard that cools", "a guard that revokes", "a guard that alerts",
    "a guard on a refusal", "the first hold after a cooling", "a cooling that was restored",
    "a revocation by a guard that was restored", "exactly at the end of a window", "a refused renewal while cooling",
    "again: refused", "again: open",
}  # fmt: skip


def drawn_guard(random: Random) -> Guard:
    label, other = random.sample(("user", "key", "session", "origin"), 2)
    action = random.choice(("cool", "cool", "revoke", "alert"))
    return Guard(
        label, random.choice((1, 2, 3, 5)), random.choice((1, 2, 5, 20, 60)), action,
        random.choice((1, 2, 10)) if action == "cool" else 0, random.choice((None, None, other)),
    )  # fmt: skip


def drawn_plan(random: Random) -> Plan:
    budgets = {"site": Budget("requests", random.choice((3, 40, 1_000)))}
    guards = {name: drawn_guard(random) for name in ("one", "two", "three")[: random.randint(0, 3)]}
    return Plan(budgets, guards=guards or msgspec.UNSET)


def drawn_ask(random: Random, trial: Trial, number: int, at: int) -> AnyAsk:
    auditor = trial.auditor
    assert auditor.plan is not None
    kind = random.random()
    old = f"h{random.randint(max(0, number - 6), number)}"
    if kind < 0.08:
        return Settle(old, {"requests": 1})
    if kind < 0.16:
        return Renew(old, 1, None, {"requests": 2})
    if kind < 0.24:
        known = [*auditor.cooling, *auditor.revoked, ("user", "a")]
        label, value = random.choice(known)
        return Restore(f"u{number}", label, value)
    if kind < 0.25:
        return Revoke(f"r{number}", "user", "b", "shared")
    if kind < 0.27:
        return random.choice((Freeze(f"f{number}", "user=b", "look", until=at + SECOND), Thaw(f"t{number}", "user=b")))
    if kind < 0.30:
        kept = auditor.plan if random.random() < 0.5 else drawn_plan(random)
        return ApplyPlan(
            f"p{number}", msgspec.structs.replace(kept, ttl_s=random.choice((30, 60))), digest(auditor.plan)
        )
    labels = {name: random.choice(values) for name, values in LABELS.items() if random.random() < 0.9}
    id = old if random.random() < 0.1 else f"h{number}"
    return Hold(id, [Option({"requests": 1})], at // SECOND * SECOND + 2 * SECOND, labels)


LABELS = {"user": "ab", "key": "kl", "session": "st", "origin": "xyz"}


def drawn_moment(random: Random, trial: Trial, at: int) -> int:
    """Mostly soon; often the very nanosecond around the end of a cooling or of a window."""
    if random.random() < 0.7:
        return at + random.choice((0, 0, 1, SECOND // 2, SECOND))
    auditor = trial.auditor
    edges = [until for until, _ in auditor.cooling.values()]
    edges += [
        came + guard.within_s * SECOND for came, _ in auditor.came[-4:] for guard in auditor.guards().values()
    ]  # fmt: skip
    edge = random.choice(edges or [at]) + random.choice((-1, 0, 0, 1))
    return max(at, edge)


def story(seed: int) -> tuple[Trial, list[tuple[int, int, list[AnyAsk], Entry]], Counter[str]]:
    random, trial, seen = Random(seed), Trial(), Counter[str]()
    said: list[tuple[int, int, list[AnyAsk], Entry]] = []
    at, asks = NOON, list[AnyAsk]([ApplyPlan("p", drawn_plan(random), "")])
    for number in range(MESSAGES):
        told = trial.say(at, asks)
        seen.update(sightings(asks, told, trial.auditor))
        said.append((trial.seq, at, asks, told))
        at = drawn_moment(random, trial, at)
        asks = [drawn_ask(random, trial, 3 * number + part, at) for part in range(random.choice((1, 1, 2, 3)))]
    return trial, said, seen


def test_every_guard_and_every_end_of_one_is_predicted() -> None:
    seen = Counter[str]()
    for seed in range(STORIES):
        seen += story(seed)[2]
    assert WANTED - set(seen) == set(), seen


def test_a_standby_a_replay_and_a_restored_snapshot_say_and_hold_the_same() -> None:
    for seed in range(STORIES, STORIES + 15):
        trial, said, _ = story(seed)
        standby, replay, snapshot = Wallet("main"), Wallet("main"), Wallet("main")
        for seq, ts, asks, told in said:
            stored = msgspec.json.decode(msgspec.json.encode(told), type=Entry)
            fold(standby, seq=seq, ts=ts, asks=asks, entry=stored)
            assert tell(replay, seq=seq, ts=ts, asks=asks) == told
            assert tell(snapshot, seq=seq, ts=ts, asks=asks) == told
            if seq % 7 == 0:
                snapshot = restore.load(snapshot.dump())
        for wallet in (standby, replay, snapshot):
            assert wallet.dump() == trial.wallet.dump()
            wallet.check()
