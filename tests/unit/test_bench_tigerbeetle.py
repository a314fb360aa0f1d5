"""What we ask TigerBeetle to do is what a budget means, by its own types and a small ledger of ours in its place.

Its server is in no package registry, so this is all of it that is tested here: the transfers are its client's, and each
of them is turned into the bytes that its client would send.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bench.contender import COST, HELD, LIMIT, Call, batches, callers, pairs
from bench.drive import drive
from bench.peers.tigerbeetle import EVENTS_MAX, HOLDS_MAX, SHARED, RefusedError, TigerBeetleClient, account_of

tb = pytest.importorskip("tigerbeetle")
bindings = pytest.importorskip("tigerbeetle.bindings")


class SmallLedger:
    """Accounts and transfers as its reference has them, as far as budgets need: linked, pending, posted, capped."""

    def __init__(self) -> None:
        self.accounts: dict[int, Any] = {}
        self.pending: dict[int, Any] = {}
        self.seen: set[int] = set()

    async def create_accounts(self, accounts: list[Any]) -> list[Any]:
        self.accounts |= {account.id: account for account in accounts}
        assert [bindings.CAccount.from_param(account) for account in accounts]
        return [tb.CreateAccountResult(1, tb.CreateAccountStatus.CREATED) for _ in accounts]

    async def create_transfers(self, transfers: list[Any]) -> list[Any]:
        await asyncio.sleep(0)  # as anything that is asked over a network
        assert len(transfers) <= EVENTS_MAX
        assert not transfers[-1].flags & tb.TransferFlags.LINKED
        results: list[Any] = []
        while len(results) < len(transfers):
            chain = [transfers[len(results)]]
            while chain[-1].flags & tb.TransferFlags.LINKED:
                chain.append(transfers[len(results) + len(chain)])
            wrong = next((status for each in chain if (status := self.wrong(each)) is not None), None)
            if wrong is None:
                for each in chain:
                    self.take(each)
            results += [tb.CreateTransferResult(1, wrong or tb.CreateTransferStatus.CREATED)] * len(chain)
        return results

    async def lookup_accounts(self, accounts: list[int]) -> list[Any]:
        return [self.accounts[id] for id in accounts]

    def wrong(self, transfer: Any) -> Any:
        """Why it cannot be taken. Each is turned into what would be sent."""
        assert bindings.CTransfer.from_param(transfer)
        if transfer.id in self.seen:
            return tb.CreateTransferStatus.EXISTS
        if transfer.flags & tb.TransferFlags.POST_PENDING_TRANSFER:
            return None if transfer.pending_id in self.pending else tb.CreateTransferStatus.PENDING_TRANSFER_NOT_FOUND
        debited = self.accounts[transfer.debit_account_id]
        capped = debited.flags & tb.AccountFlags.DEBITS_MUST_NOT_EXCEED_CREDITS
        owed = debited.debits_pending + debited.debits_posted + transfer.amount
        return tb.CreateTransferStatus.EXCEEDS_CREDITS if capped and owed > debited.credits_posted else None

    def take(self, transfer: Any) -> None:
        self.seen.add(transfer.id)
        if transfer.flags & tb.TransferFlags.POST_PENDING_TRANSFER:
            held = self.pending.pop(transfer.pending_id)
            assert transfer.amount <= held.amount
            self.accounts[held.debit_account_id].debits_pending -= held.amount
            self.accounts[held.debit_account_id].debits_posted += transfer.amount
        elif transfer.flags & tb.TransferFlags.PENDING:
            self.pending[transfer.id] = transfer
            self.accounts[transfer.debit_account_id].debits_pending += transfer.amount
        else:
            self.accounts[transfer.debit_account_id].debits_posted += transfer.amount
            self.accounts[transfer.credit_account_id].credits_posted += transfer.amount


CALL = Call("0a1b2c3d4e5f-0000000007", "u00012")


async def opened() -> tuple[SmallLedger, TigerBeetleClient]:
    ledger = SmallLedger()
    client = TigerBeetleClient(ledger, ())
    await client.prepare()
    return ledger, client


async def test_a_hold_counts_in_both_budgets_and_its_settlement_is_what_it_cost() -> None:
    ledger, client = await opened()
    budgets = [ledger.accounts[id] for id in (SHARED, account_of("u00012"))]
    assert [budget.credits_posted for budget in budgets] == [LIMIT, LIMIT]
    await client.hold(CALL)
    assert [(budget.debits_pending, budget.debits_posted) for budget in budgets] == [(HELD, 0), (HELD, 0)]
    await client.settle(CALL)
    assert [(budget.debits_pending, budget.debits_posted) for budget in budgets] == [(0, COST), (0, COST)]
    assert await client.used() == COST


async def test_what_was_not_taken_raises() -> None:
    ledger, client = await opened()
    with pytest.raises(RefusedError):
        await client.settle(CALL)  # of nothing
    await client.hold(CALL)
    with pytest.raises(RefusedError):
        await client.hold(CALL)  # once more
    other = Call("0a1b2c3d4e5f-0000000008", "u00013")
    ledger.accounts[account_of("u00013")].credits_posted = 0
    with pytest.raises(RefusedError):
        await client.hold(other)
    assert await client.used() == HELD  # neither of the two, when one is refused


async def test_it_is_driven_as_the_others_are_and_its_books_are_checked() -> None:
    for shape in (callers(2), pairs(2), batches(2, HOLDS_MAX)):
        _, client = await opened()
        sample = await drive(client, shape, seconds=0.02, warm_up_s=0.0)
        assert sample.decisions_per_s > 0
