"""The alerts of one projector: the fold, what is seen beside it, the senders, the freezes, and what readers get.

Without targets it still folds, so that the page and `purse alerts list` can say what was raised.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from engine.client import Purse
from engine.core.documents import AlertBrief, AlertShown, Status, TriedTarget
from engine.core.wallet import Wallet
from engine.errors import NoAnswer, StreamRefused
from engine.journal import Journal
from projector.alerts import wording
from projector.alerts.alert import Alert, alert_id
from projector.alerts.fold import AlertFold, State
from projector.alerts.freezing import Freezing
from projector.alerts.records import Records
from projector.alerts.rules import Rules
from projector.alerts.sending import Sending
from projector.alerts.settings import AlertSettings
from projector.alerts.target import Target, parcel_of
from projector.alerts.watching import seen_now
from projector.delivery.parcel import NotTaken

WATCH_S = 0.5
SEEN_MAX = 100  # alerts of what no record says
SHOWN_MAX = 100
BRIEF_MAX = 5  # in the status, which is pushed four times a second
OPEN_AGAIN_S = 1.0

StatusNow = Callable[[], Status]
Untold = Callable[[], tuple[int, int]]
"""How many ask messages wait for their told, and when the oldest was stamped."""


class Alerting:
    """Alerts by these rules, to these targets. `freezing`: who asks for freezes; None: nobody here."""

    def __init__(
        self, rules: Rules | None = None, targets: Sequence[Target] = (), *, freezing: Freezing | None = None
    ) -> None:
        self.fold = AlertFold(rules if rules is not None else Rules())
        self._targets, self._freezing = tuple(targets), freezing
        self._instance = secrets.token_hex(6)
        self._seen: dict[str, Alert] = {}
        self._sendings: list[Sending] = []

    def restore(self, state: State, wallet: Wallet) -> None:
        """Go on from a snapshot, or anew: `State()`."""
        self.fold = AlertFold(self.fold.rules, state, wallet)

    # --- beside the fold ----------------------------------------------------------------------------------------------

    async def run(self, journal: Journal, status: StatusNow, untold: Untold) -> None:
        """Send, watch and freeze until cancelled. Everything folded before now has been folded."""
        if self._targets:
            await self._start(journal, lambda: status().as_of)
        async with asyncio.TaskGroup() as tasks:
            for sending in self._sendings:
                tasks.create_task(sending.run(self._all))
            tasks.create_task(self._watch(status, untold))

    async def _start(self, journal: Journal, now: Callable[[], int]) -> None:
        records = Records(journal)
        while True:
            try:
                await records.open()
                break
            except (NoAnswer, StreamRefused):
                await asyncio.sleep(OPEN_AGAIN_S)
        wallet = journal.names.wallet
        self._sendings = [
            Sending(target, records, wallet=wallet, instance=self._instance, now=now) for target in self._targets
        ]

    async def _watch(self, status: StatusNow, untold: Untold) -> None:
        while True:
            now = status()
            waiting, oldest = untold()
            for alert in seen_now(self.fold.rules, now, waiting=waiting, oldest=oldest):
                self._seen.setdefault(alert.id, alert)
            while len(self._seen) > SEEN_MAX:
                del self._seen[next(iter(self._seen))]
            if self._freezing is not None:
                await self._freezing.look(self.fold.raised.values(), now)
            await asyncio.sleep(WATCH_S)

    def _all(self) -> dict[str, Alert]:
        return self.fold.raised | self._seen

    # --- showing ------------------------------------------------------------------------------------------------------

    def shown(self) -> list[AlertShown]:
        """The newest alerts, newest first, with what is known here of each delivery."""
        return [self._shown(alert) for alert in self._newest(SHOWN_MAX)]

    def brief(self) -> list[AlertBrief]:
        """The newest few, for the status."""
        return [AlertBrief(alert.id, alert.text, alert.at, self._delivered(alert)) for alert in self._newest(BRIEF_MAX)]

    def _newest(self, most: int) -> list[Alert]:
        raised = list(self.fold.raised.values())[-most:] + list(self._seen.values())
        return sorted(raised, key=lambda alert: alert.at, reverse=True)[:most]

    def _shown(self, alert: Alert) -> AlertShown:
        deliveries = {sending.name: _state(sending, alert) for sending in self._sendings}
        return AlertShown(
            alert.id, alert.rule, alert.text, alert.at, alert.seq, alert.budget, alert.period, alert.threshold,
            alert.unit, alert.figures, deliveries,
        )  # fmt: skip

    def _delivered(self, alert: Alert) -> bool:
        return bool(self._sendings) and all(_state(sending, alert) == "sent" for sending in self._sendings)

    # --- trying -------------------------------------------------------------------------------------------------------

    @property
    def targets(self) -> list[str]:
        return [target.settings.name for target in self._targets]

    async def test(self, name: str, wallet: str) -> list[TriedTarget]:
        """Send a test to this target ("": to all) now, once, and say what each answered."""
        targets = [target for target in self._targets if name in ("", target.settings.name)]
        at = time.time_ns()
        alert = Alert(alert_id("test", "", str(at), ""), "test", wording.TEST, at)
        return list(await asyncio.gather(*(_test(target, alert, wallet) for target in targets)))


def _state(sending: Sending, alert: Alert) -> str:
    record = sending.known(alert.id)
    return record.state if record is not None else "new"


async def _test(target: Target, alert: Alert, wallet: str) -> TriedTarget:
    name = target.settings.name
    try:
        await target.carrier.carry(parcel_of(alert, target.settings.kind, wallet))
    except NotTaken as error:
        return TriedTarget(name, delivered=False, why=str(error))
    return TriedTarget(name, delivered=True)


@asynccontextmanager
async def alerting(settings: AlertSettings, url: str, wallet: str) -> AsyncIterator[Alerting]:
    """What the settings ask for, with a client where something may be frozen."""
    async with AsyncExitStack() as stack:
        targets: list[Target] = []
        if settings.targets:
            from projector.delivery.webhook import Webhook  # an HTTP client, only where somebody needs one
            from projector.observers.fetch import open_session

            session = await stack.enter_async_context(open_session())
            for one in settings.targets:
                hook = Webhook(session, url=one.url, secret=one.secret, now=time.time, answer_s=one.timeout_s)
                targets.append(Target(one, hook))
        freezing = None
        if any(runaway.freeze for runaway in settings.rules.runaways):
            freezing = Freezing(await stack.enter_async_context(Purse.connect(url, wallet=wallet)))
        yield Alerting(settings.rules, targets, freezing=freezing)
