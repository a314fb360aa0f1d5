"""The routes for keys: make one, list them, revoke one. A key is in one answer, once, and nowhere else."""

from __future__ import annotations

import msgspec
from aiohttp import web

from engine.core import checks
from engine.core.messages import Revoke
from engine.errors import BadAsk
from web.answers import Answer, Body, json_response
from web.auth import AUTHENTICATED_LABELS, Caller
from web.bodies import read_body, shown
from web.desk import Desk
from web.keyring import TooManyKeys
from web.keys import KEY_LABELS_MAX, KEYS_MAX, NAMEABLE, Key, hash_of, is_short_id, make_key
from web.moments import NS_PER_S, format_moment
from web.problem_shapes import OF_AN_ASK, NotFoundProblem, TooManyKeysProblem
from web.problems import Problem
from web.read_shapes import KeyMade, KeyRevoked, KeysAnswer
from web.requests import KeyBody, RevokeKeyBody
from web.routes import Route


async def _new(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    secret, key = await new_key(desk, caller, await read_body(request, KeyBody))
    return json_response({"key": secret, **_written(key, key.created_at)}, status=201)


async def new_key(desk: Desk, caller: Caller, body: KeyBody) -> tuple[str, Key]:
    """Make a key: itself, to be shown once, and what is kept of it. Raises `BadAsk`, `Problem` 409, `PurseError`."""
    now = desk.purse.now()
    id, secret = make_key()
    kept = await _replaced(desk, body) or _nothing_said(id, body)
    key = Key(
        id=id,
        hash=hash_of(secret),
        namespace=kept.namespace,
        role=body.role or kept.role,
        created_at=now,
        made_by=caller.name,
        user=body.user if body.user is not None else kept.user,
        cohort=body.cohort if body.cohort is not None else kept.cohort,
        labels=body.labels if body.labels is not None else kept.labels,
        names=tuple(body.names) if body.names is not None else kept.names,
        expires_at=None if body.expires_s is None else now + body.expires_s * NS_PER_S,
        replaces=body.replaces or "",
        note=body.note,
    )
    _check(key)
    try:
        await desk.keys.add(key)
    except TooManyKeys:
        raise Problem(409, "too-many-keys", f"A wallet has at most {KEYS_MAX:,} keys.", title="Too many keys") from None
    return secret, key


def _nothing_said(id: str, body: KeyBody) -> Key:
    """What a key is that replaces none and says no more of itself."""
    if body.role is None:
        raise BadAsk("role", "expected spend, observe, audit or admin")
    return Key(id=id, hash="", role=body.role, namespace=id, created_at=0, made_by="")


async def _replaced(desk: Desk, body: KeyBody) -> Key | None:
    """The key from which the new one has whatever its body does not say."""
    if body.replaces is None:
        return None
    await desk.keys.catch_up()
    old = await desk.keys.find(body.replaces) if is_short_id(body.replaces) else None
    if old is None:
        raise BadAsk("replaces", "there is no key with this short id")
    if body.role not in (None, old.role):
        raise BadAsk("role", f"the key that it replaces has the role {old.role}")
    return old


def _check(key: Key) -> None:
    """Raises `BadAsk`. What says who asks belongs to keys that spend, where it goes on holds."""
    for name, value in (("user", key.user), ("cohort", key.cohort)):
        if value and (wrong := checks.labels({name: value})) is not None:
            raise BadAsk(name, wrong[1])
    if len(key.labels) > KEY_LABELS_MAX:
        raise BadAsk("labels", f"at most {KEY_LABELS_MAX} labels on a key")
    for name, value in key.labels.items():
        if not isinstance(value, str):
            raise BadAsk(f"labels.{shown(name)}", "expected a string")
        if name in AUTHENTICATED_LABELS:
            raise BadAsk(f"labels.{name}", "say it as user or cohort; key and origin follow by themselves")
    if (wrong := checks.labels(key.labels)) is not None:
        raise BadAsk(*wrong)
    if not set(key.names) <= set(NAMEABLE):
        raise BadAsk("names", f"a key may be made to name {' and '.join(NAMEABLE)}, nothing else")
    if key.role != "spend" and (key.cohort or key.labels or key.names):
        raise BadAsk("role", "cohort, labels and names belong to a key with the role spend")
    if not key.note.isprintable():
        raise BadAsk("note", "expected printable characters")


async def _list(_request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    await desk.keys.catch_up()
    now = desk.purse.now()
    return json_response({"keys": [_written(key, now) for key in desk.keys.all()]})


async def _revoke(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body = await read_body(request, RevokeKeyBody)
    key, answer = await end_key(desk, caller, request.match_info["id"], body.reason)
    if answer.status >= 400:
        return answer.response()
    return json_response({**answer.body, **_written(key, desk.purse.now())})


async def end_key(desk: Desk, caller: Caller, id: str, reason: str) -> tuple[Key, Answer]:
    """First the key, so that no web process lets it in; then, on the stream, what is on its way to the engine.

    Raises `BadAsk`, `Problem` 404, `PurseError`.
    """
    ask = Revoke(f"key-revoked:{id}", "key", id, reason, caller.name)
    if not is_short_id(id):
        raise _no_key()
    if (wrong := checks.switch(ask)) is not None:
        raise BadAsk(*wrong)
    now = desk.purse.now()
    key = await desk.keys.revoke(id, at=now, by_whom=caller.name, reason=reason)
    if key is None:
        raise _no_key()
    first = msgspec.structs.replace(ask, reason=key.reason, by_whom=key.revoked_by)
    return key, desk.answer(first, await desk.purse.ask(first), caller)


def _no_key() -> Problem:
    return Problem(404, "not-found", "There is no key with this short id.")


def _written(key: Key, now: int) -> Body:
    """All that is kept of it but the hash."""
    moments = {"created_at": key.created_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at}
    return {
        "id": key.id,
        "role": key.role,
        "state": key.ended(now) or "active",
        "user": key.user,
        "cohort": key.cohort,
        "labels": key.labels,
        "names": key.names,
        "namespace": key.namespace,
        "replaces": key.replaces,
        "note": key.note,
        **{name: None if moment is None else format_moment(moment) for name, moment in moments.items()},
        "made_by": key.made_by,
        "revoked_by": key.revoked_by,
        "reason": key.reason,
    }


_ERRORS = {
    400: "What was sent cannot be understood; `field` says where.",
    401: "A key is needed.",
    403: "The key's role may not do this.",
    503: "The keys cannot be read or written now.",
}

ROUTES = (
    Route(
        method="POST", path="/v1/keys", access="admin", handler=_new, takes=KeyBody, tag="keys",
        summary="Make a key. It is in this answer and never shown again.",
        answers={201: "`key` is the key; the rest is what `GET /v1/keys` shows.", **_ERRORS, 409: "Too many keys."},
        gives={201: (KeyMade,)}, problems=(TooManyKeysProblem,),
    ),
    Route(
        method="GET", path="/v1/keys", access="admin", handler=_list, tag="keys",
        summary="All keys, newest first: whose they are and what they may, never the keys themselves.",
        answers={200: "The keys.", 401: _ERRORS[401], 403: _ERRORS[403], 503: _ERRORS[503]},
        gives={200: (KeysAnswer,)},
    ),
    Route(
        method="POST", path="/v1/keys/{id}/revoke", access="admin", handler=_revoke, takes=RevokeKeyBody, tag="keys",
        summary="End a key for good. It may still settle, release and look at the holds it opened.",
        answers={
            200: "Revoked, or revoked before.", **_ERRORS, 404: "There is no such key.",
            422: "The revocation's id stands for something else.",
        },
        gives={200: (KeyRevoked,)}, problems=(*OF_AN_ASK, NotFoundProblem),
    ),
)  # fmt: skip
