"""Hypothesis drives a wallet and the naive auditor side by side, and shrinks whatever they disagree on."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from property.story import Story
from property.trial import Trial

from engine.core.messages import AnyAsk

settings.register_profile(
    "ci", max_examples=60, stateful_step_count=25, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
settings.register_profile(
    "soak", max_examples=4_000, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)

randoms = st.randoms(use_true_random=False)


class WalletMachine(RuleBasedStateMachine):
    """Every rule is one message: some time passes, then one ask (or several, or none). The trial checks each step."""

    def __init__(self) -> None:
        super().__init__()
        self.trial = Trial()
        self.story = Story(self.trial.auditor)

    def one(self, random: Random, act: Callable[[Random], AnyAsk]) -> None:
        ts = self.story.pass_time(random)
        ask = act(random)
        self.story.said.append(ask)
        self.trial.say(ts, [ask])

    @initialize(random=randoms)
    def open(self, random: Random) -> None:
        self.trial.say(*self.story.opening(random))

    @rule(random=randoms)
    def hold(self, random: Random) -> None:
        self.one(random, self.story.hold)

    @rule(random=randoms)
    def settle(self, random: Random) -> None:
        self.one(random, self.story.settle)

    @rule(random=randoms)
    def stray(self, random: Random) -> None:
        self.one(random, self.story.stray)

    @rule(random=randoms)
    def renew(self, random: Random) -> None:
        self.one(random, self.story.renew)

    @rule(random=randoms)
    def observe(self, random: Random) -> None:
        self.one(random, self.story.observe)

    @rule(random=randoms)
    def adjust(self, random: Random) -> None:
        self.one(random, self.story.adjust)

    @rule(random=randoms)
    def freeze(self, random: Random) -> None:
        self.one(random, self.story.freeze)

    @rule(random=randoms)
    def thaw(self, random: Random) -> None:
        self.one(random, self.story.thaw)

    @rule(random=randoms)
    def revoke(self, random: Random) -> None:
        self.one(random, self.story.revoke)

    @rule(random=randoms)
    def restore(self, random: Random) -> None:
        self.one(random, self.story.restore)

    @rule(random=randoms)
    def plan(self, random: Random) -> None:
        self.one(random, self.story.plan)

    @rule(random=randoms)
    def repeat(self, random: Random) -> None:
        self.one(random, self.story.repeat)

    @rule(random=randoms)
    def skip(self, random: Random) -> None:
        ts, asks = self.story.message(random)
        self.trial.say(self.story.ahead(random, ts), asks, skipped=True)

    @rule(random=randoms)
    def message(self, random: Random) -> None:
        self.trial.say(*self.story.message(random))


TestWallet = WalletMachine.TestCase
TestWallet.settings = settings.get_profile("soak" if os.environ.get("PURSE_SOAK") else "ci")
