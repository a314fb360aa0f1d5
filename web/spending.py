"""The routes a caller uses around a call: hold, settle, release, renew, ask what became of it; one by one or many."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from aiohttp import web

from engine.core import limits
from engine.core.documents import Life
from engine.core.messages import (
    AnyAsk,
    Settle,
)
from web.answers import Body, json_response, unknown
from web.asks import check_hold, check_id, fresh_id
from web.auth import Access, Caller
from web.batch_shapes import BatchAnswer
from web.bodies import read_body
from web.desk import Desk
from web.known import Terms
from web.moments import format_moment
from web.problem_shapes import OF_A_HOLD, OF_AN_ASK, InvalidProblem, NoPlanProblem, UnknownProblem
from web.problems import Problem, too_large
from web.read_shapes import LifeAnswer
from web.requests import (
    WAIT_S_DEFAULT,
    BatchBody,
    BatchHold,
    BatchItem,
    BatchObserve,
    BatchRelease,
    BatchRenew,
    BatchSettle,
    HoldBody,
    ReleaseBody,
    RenewBody,
    SettleBody,
)  # fmt: skip
from web.routes import Route
from web.shapes import ForgottenAnswer, HeldAnswer, SettledAnswer, StrayAnswer

IDEMPOTENCY_KEY = "Idempotency-Key"
BATCH_BYTES_MAX = limits.MESSAGE_BYTES_MAX - 512  # a batch is one message; the rest is what stands around its asks


def key_of(request: web.Request, caller: Caller, *, more: str = "") -> str | None:
    """The id in `Idempotency-Key`, quoted or bare, with `more` behind it: as it is called on the stream."""
    written = request.headers.get(IDEMPOTENCY_KEY)
    if written is None:
        return None
    bare = written[1:-1] if len(written) >= 2 and written[0] == written[-1] == '"' else written
    return check_id(bare + more, field=IDEMPOTENCY_KEY, caller=caller)


def id_of(request: web.Request, said: str | None, caller: Caller) -> str:
    """The id of an ask as it is called on the stream: what the body says, else the header, else a fresh one."""
    if said is not None:
        return check_id(said, field="id", caller=caller)
    return key_of(request, caller) or fresh_id(caller)


def _hold_of(request: web.Request, caller: Caller) -> str:
    return check_hold(request.match_info["id"], field="id", caller=caller)


async def _answer(desk: Desk, ask: AnyAsk, caller: Caller, *, wait_s: float = WAIT_S_DEFAULT) -> web.Response:
    return desk.answer(ask, await desk.purse.ask(ask, wait_s=wait_s), caller).response()


async def _hold(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body = await read_body(request, HoldBody)
    id = id_of(request, body.id, caller)
    by = desk.purse.by(body.wait_s)
    ask = await desk.known.understand(lambda terms: desk.reader(terms, caller).hold(body, id=id, by=by))
    return await _answer(desk, ask, caller, wait_s=body.wait_s)


async def _settle(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    hold = _hold_of(request, caller)
    body = await read_body(request, SettleBody)
    id = check_id(body.id, field="id", caller=caller) if body.id is not None else key_of(request, caller) or ""
    await _check_own(desk, caller, [hold])
    ask = await desk.known.understand(lambda terms: desk.reader(terms, caller).settle(body, hold=hold, id=id))
    return await _answer(desk, ask, caller)


async def _release(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    hold = _hold_of(request, caller)
    await read_body(request, ReleaseBody, may_be_empty=True)
    await _check_own(desk, caller, [hold])
    await desk.known.ready()
    return await _answer(desk, Settle(hold=hold, release=True), caller)


async def _renew(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    hold = _hold_of(request, caller)
    body = await read_body(request, RenewBody)
    ask = await desk.known.understand(lambda terms: desk.reader(terms, caller).renew(body, hold=hold))
    return await _answer(desk, ask, caller)


async def _life(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    id = _hold_of(request, caller)
    terms = await desk.known.ready()
    await desk.board.catch_up()
    life = await desk.purse.life(id)
    if life is None or not _opened(life, caller):
        return unknown(caller.shown(id)).response()
    return json_response({**_written(life, terms), "id": caller.shown(id)})


async def _check_own(desk: Desk, caller: Caller, holds: Iterable[str]) -> None:
    """Whoever brings a key that has ended speaks of the holds it opened, and of nothing else. Raises `Problem` 403."""
    if caller.ended is None:
        return
    await desk.board.catch_up()
    for hold in holds:
        life = await desk.purse.life(hold)
        if life is None or not _opened(life, caller):
            raise Problem(403, "key-ended", f"This key has ended, and opened no hold {caller.shown(hold)}.")


def _opened(life: Life, caller: Caller) -> bool:
    """A key that ended sees what it opened; one in use, also what the key opened that it replaces."""
    return caller.ended is None or life.key == caller.key


def _written(life: Life, terms: Terms) -> Body:
    return {
        "state": life.state,
        "at": format_moment(life.at),
        "expires_at": None if life.expires_at is None else format_moment(life.expires_at),
        "amounts": terms.written(life.amounts),
        "progress": terms.written(life.progress),
        "charged": terms.written(life.charged),
        "periods": life.periods,
        "seq": life.first,
    }


# --- many at once -----------------------------------------------------------------------------------------------------


async def _batch(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body = await read_body(request, BatchBody)
    if len(body.asks) > limits.MESSAGE_ASKS_MAX:
        raise too_large(f"A batch has at most {limits.MESSAGE_ASKS_MAX} asks.")
    _check_rights(body, desk, caller)
    wait_s = max((item.wait_s for item in body.asks if isinstance(item, BatchHold)), default=WAIT_S_DEFAULT)
    asks = await desk.known.understand(lambda terms: _read_batch(body, desk, terms, caller))
    if len(msgspec.json.encode(asks)) > BATCH_BYTES_MAX:
        raise too_large(f"The asks of a batch have at most {BATCH_BYTES_MAX:,} bytes together.")
    await _check_own(desk, caller, [ask.hold for ask in asks if isinstance(ask, Settle)])
    told = await desk.purse.ask_all(asks, wait_s=wait_s)
    answers = (desk.answer(ask, answered, caller) for ask, answered in zip(asks, told, strict=True))
    return json_response({"told": [{"status": answer.status, **answer.body} for answer in answers]})


def _read_batch(body: BatchBody, desk: Desk, terms: Terms, caller: Caller) -> list[AnyAsk]:
    asks: list[AnyAsk] = []
    for index, item in enumerate(body.asks):
        by = desk.purse.by(item.wait_s) if isinstance(item, BatchHold) else 0
        asks.append(desk.reader(terms, caller, path=f"asks[{index}].").item(item, by=by))
    return asks


def _check_rights(body: BatchBody, desk: Desk, caller: Caller) -> None:
    """What needs a right alone needs it in a batch too."""
    for index, item in enumerate(body.asks):
        desk.gate.check(caller, _access(item), place=f"asks[{index}].ask: ")


def _access(item: BatchItem) -> Access:
    match item:
        case BatchHold() | BatchRenew():
            return "spend"
        case BatchSettle() | BatchRelease():
            return "settle"
        case BatchObserve():
            return "observe"
        case _:
            return "admin"


_REFUSED = {
    400: "What was sent cannot be understood (`field`), or the call is larger than the whole budget (`why`: `never`).",
    401: "A key is needed.",
    402: "The budget is used up until `resets_at`. Do not retry before.",
    403: "Frozen or revoked; or the key may not do this.",
    409: "The hold has ended. No permission to call.",
    422: "This id stands for something else.",
    429: "Others hold what is left; try again after `Retry-After` seconds. Or slow down.",
    503: "Nobody can decide now. Nothing may be spent.",
}
_UNHEARD = "Nobody answers now. `spooled`: it is kept and will be recorded; where it is not true, send it again."
_BAD = {400: _REFUSED[400], 401: _REFUSED[401], 403: "The key may not do this."}
_ENDED = (SettledAnswer, StrayAnswer, ForgottenAnswer)

ROUTES = (
    Route(
        method="POST", path="/v1/holds", access="spend", handler=_hold, takes=HoldBody, tag="spending", keyed=True,
        queue="hold",
        summary="May I spend at most this? Only 201 (or 200, asked again) is permission to call.",
        answers={201: "Held.", 200: "Held before, under the same id: the same answer.", **_REFUSED},
        gives={200: (HeldAnswer,), 201: (HeldAnswer,)}, problems=OF_A_HOLD,
    ),
    Route(
        method="POST", path="/v1/holds:batch", access="batch", handler=_batch, takes=BatchBody, tag="spending",
        queue="settle",
        summary="Up to 1,024 asks in order, one outcome each. One that cannot be read refuses the whole batch unsent.",
        answers={200: "One outcome each, with its own `status`.", **_BAD, 413: "Too many.", 503: _REFUSED[503]},
        gives={200: (BatchAnswer,)}, problems=(NoPlanProblem,),
    ),
    Route(
        method="GET", path="/v1/holds/{id}", access="life", handler=_life, tag="spending",
        summary="What became of one call.",
        answers={200: "Its life.", **_BAD, 404: "Not known, or forgotten.", 503: _REFUSED[503]},
        gives={200: (LifeAnswer,)}, problems=(InvalidProblem, NoPlanProblem, UnknownProblem),
    ),
    Route(
        method="POST", path="/v1/holds/{id}/settle", access="settle", handler=_settle, takes=SettleBody, keyed=True,
        tag="spending",
        queue="settle",
        summary="The call cost this. Never refused, whatever it cost.",
        answers={200: "Recorded.", **_BAD, 422: "Settled before at other amounts.", 503: _UNHEARD},
        gives={200: _ENDED}, problems=OF_AN_ASK,
    ),
    Route(
        method="POST", path="/v1/holds/{id}/release", access="settle", handler=_release, takes=ReleaseBody,
        body_optional=True, tag="spending",
        queue="settle",
        summary="The call ended at what was reported so far, zero if nothing was.",
        answers={200: "Given back.", **_BAD, 422: "Settled before at another amount.", 503: _UNHEARD},
        gives={200: _ENDED}, problems=OF_AN_ASK,
    ),
    Route(
        method="POST", path="/v1/holds/{id}/renew", access="spend", handler=_renew, takes=RenewBody, tag="spending",
        queue="hold",
        summary="Hold on longer, maybe with a larger total.",
        answers={200: "Renewed.", **_REFUSED, 404: "Not known, or forgotten."},
        gives={200: (HeldAnswer,)}, problems=(*OF_A_HOLD, UnknownProblem),
    ),
)  # fmt: skip
