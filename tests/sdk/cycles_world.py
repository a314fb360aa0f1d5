"""A whole wallet that speaks Cycles, the programs that speak it to the wallet, and a budget for each test."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from running_purse import RunningPurse
from sdk.clients import FETCHED, HERE, Clients

TENANT = "acme"
SPENDTHRIFT = "spendthrift"
"""Another tenant, who may ruin its budget."""

BUDGETS = 48
"""One for each test of a file, and some more."""

LIMIT = 100_000
"""Of such a budget, in microcents: a tenth of a cent."""

MICROCENTS = 100_000_000
"""In a dollar."""

PLAN = f"""
[budgets.tenant]
unit = "usd"
limit = "10"
per = "total"
where = {{ tenant = "{TENANT}" }}

[budgets.spendthrift]
unit = "usd"
limit = "10"
per = "total"
where = {{ tenant = "{SPENDTHRIFT}" }}

[budgets.workflows]
unit = "usd"
limit = "{Decimal(LIMIT) / MICROCENTS}"
per = "total"
each = "workflow"
where = {{ tenant = "{TENANT}" }}

[budgets.tokens]
unit = "tokens"
limit = "1000000"
per = "total"
where = {{ tenant = "{TENANT}" }}
""" + "".join(
    f"""
[budgets.agent-{number}]
unit = "usd"
limit = "{Decimal(LIMIT) / MICROCENTS}"
per = "total"
where = {{ tenant = "{TENANT}", agent = "agent-{number}" }}
"""
    for number in range(BUDGETS)
)


PARTS = ("settled", "held", "remaining")


@dataclass(frozen=True)
class CyclesProgram:
    """`lists`: what it was made to run with, by the lists it is fetched from; what stands before wins."""

    script: str
    which: str
    lists: tuple[str, ...]

    @property
    def packages(self) -> str:
        return os.pathsep.join(str(FETCHED / name) for name in self.lists)

    @property
    def missing(self) -> str | None:
        """Why it cannot run here, if it cannot."""
        gone = [name for name in self.lists if not (FETCHED / name).exists()]
        return f"needs {', '.join(gone)} in {FETCHED}, which `make sdks` fetches" if gone else None

    def command(self) -> list[str]:
        return [sys.executable, str(HERE / self.script)]

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(FETCHED), "PYTHONPATH": self.packages}


CLIENT = CyclesProgram("ask_cycles.py", "cycles", ("cycles",))
GATE = CyclesProgram("ask_cycles_gate.py", "cycles-gate", ("cycles-langchain", "langchain", "cycles"))
HOOKS = CyclesProgram("ask_cycles_hooks.py", "cycles-hooks", ("cycles-agents", "agents", "cycles"))


@dataclass
class Spending:
    """What the wallet itself says of one budget, in microcents or tokens."""

    settled: int
    held: int
    remaining: int


@dataclass
class CyclesWallet:
    """`keys`: tenant -> what its programs are given."""

    purse: RunningPurse
    keys: dict[str, str]
    clients: Clients

    async def budgets(self) -> dict[str, Spending]:
        shown = json.loads(await self.said("--json", "status"))["budgets"]
        return {
            budget["name"]: Spending(*(counted(budget[part], budget["unit"]) for part in PARTS)) for budget in shown
        }

    async def audited(self) -> str:
        """What an audit of today says, if it finds nothing wrong."""
        return await self.said("audit", "today", "--data", str(self.purse.data))

    async def answers(self) -> bool:
        """Whether it says how it stands: for a moment it does not, where a part of it was killed."""
        return (await asyncio.to_thread(self.purse.ask, "status")).exit_code == 0

    async def said(self, *arguments: str) -> str:
        """What a command of `purse` prints, if it does as it was told."""
        said = await asyncio.to_thread(self.purse.ask, *arguments)
        assert said.exit_code == 0, said.output
        return said.stdout


@dataclass
class Caller:
    """A program with a budget of its own."""

    wallet: CyclesWallet
    agent: str
    journal: Path
    program: CyclesProgram = CLIENT
    url: str = ""
    """Where it believes the wallet to be, if not where it is."""
    tenant: str = TENANT

    @property
    def subject(self) -> dict[str, str]:
        return {"tenant": self.tenant, "agent": self.agent}

    @property
    def scope(self) -> str:
        return f"tenant:{self.tenant}/agent:{self.agent}"

    async def spending(self) -> Spending:
        return (await self.wallet.budgets())[self.agent]

    async def spends(self, expected: Spending) -> bool:
        return await self.spending() == expected

    async def ask(self, does: str, **asked: Any) -> dict[str, Any]:
        """What the program saw."""
        common = {"key": self.wallet.keys[self.tenant], "journal": str(self.journal), "subject": self.subject}
        common["url"] = self.url or self.wallet.purse.url
        return await self.wallet.clients.ask(self.program, does, **{**common, **asked})

    async def call(self, method: str, *path: str, body: Any = None, **asked: Any) -> dict[str, Any]:
        """One method of the client; `query` and `as_is` as `ask_cycles.py` says. A key is for its tenant: see `key`."""
        if body is not None and body["idempotency_key"]:
            body = {**body, "idempotency_key": self.key(body["idempotency_key"])}
        return await self.ask("call", method=method, path=list(path), body=body, **asked)

    def key(self, key: str) -> str:
        """As it is sent: no other caller of the tenant's has one like it."""
        return f"{self.agent}-{key}"

    async def reserve(self, key: str, amount: int, **more: Any) -> dict[str, Any]:
        asked = {**estimating(self, key, amount), **more}
        return await self.call("create_reservation", body=asked)


def spending_key(purse: RunningPurse, tenant: str) -> str:
    """A key that speaks for one tenant."""
    made = purse.ask("--json", "key", "new", "--role", "spend", "--label", f"tenant={tenant}")
    return str(json.loads(made.stdout)["key"])


def counted(shown: str, unit: str) -> int:
    exact = Decimal(shown) * (MICROCENTS if unit == "usd" else 1)
    assert exact == int(exact), shown
    return int(exact)


def amount(microcents: int) -> dict[str, Any]:
    return {"unit": "USD_MICROCENTS", "amount": microcents}


def estimating(caller: Caller, key: str, microcents: int) -> dict[str, Any]:
    """What is common to asking for a reservation, for a decision and for a dry run."""
    return {
        "idempotency_key": key,
        "subject": caller.subject,
        "action": {"kind": "llm.completion", "name": "gpt-4o-mini"},
        "estimate": amount(microcents),
    }
