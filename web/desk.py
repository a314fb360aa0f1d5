"""What every handler works with: purse, settings, what is known of the plan, live board, crowd. One a process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from aiohttp import web

from engine.core.messages import AnyAsk
from engine.prices import PriceBook, load_book
from engine.prices.book import read_book
from web import builtin
from web.answers import Answer, Writer
from web.asks import Reader
from web.auth import Caller, Gate
from web.crowd import Crowd
from web.keyring import WORD, Keyring
from web.known import Known, Terms
from web.lookback import Lookback
from web.purse import Answered, Purse
from web.settings import Settings
from web.slowing import Slowing
from web.status import Board
from web.visitors import Visitors


@dataclass(frozen=True, slots=True)
class Desk:
    purse: Purse
    settings: Settings
    known: Known
    board: Board
    crowd: Crowd
    book: PriceBook
    keys: Keyring
    gate: Gate
    slowing: Slowing
    visitors: Visitors
    lookback: Lookback
    upstream_calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Calls sent, by the name of the upstream and the class of its answer."""

    def reader(self, terms: Terms, caller: Caller, *, path: str = "") -> Reader:
        """Reads bodies of this caller."""
        return Reader(terms, caller, now=self.purse.now(), path=path)

    def answer(self, ask: AnyAsk, answered: Answered, caller: Caller) -> Answer:
        """What the caller of this ask gets, under the ids it knows."""
        self.board.answered(answered.seq)
        answer = Writer(self.known.terms, self.settings.refusal_status).answer(ask, answered)
        if isinstance(id := answer.body.get("id"), str):
            answer.body["id"] = caller.shown(id)
        return answer


DESK: web.AppKey[Desk] = web.AppKey("desk", Desk)


def open_desk(purse: Purse, settings: Settings, lookback: Lookback) -> Desk:
    """Raises `Misconfigured` if the operator's prices cannot be used."""
    known = Known(purse)
    stands_in = not settings.upstreams or (settings.ask is not None and settings.ask.upstream == builtin.MODEL)
    prices = {builtin.MODEL: builtin.PRICE, **settings.prices} if stands_in else settings.prices
    book = load_book(prices, book=None if settings.price_book is None else read_book(settings.price_book))
    visitors = Visitors(settings.trusted_proxies)
    keys = Keyring(purse.bucket(WORD))
    gate = Gate(settings, keys, visitors, purse)
    slowing = Slowing(purse, settings, visitors)
    return Desk(purse, settings, known, Board(purse, known), Crowd(), book, keys, gate, slowing, visitors, lookback)
