"""Signing in to the operators' pages: who gets in, for how long, and that no other site acts in their name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from desk_client import KEY, Desk, open_desk

from web.desk import DESK
from web.pages.serving import SESSIONS
from web.pages.sessions import COOKIE, SESSION_S, SESSIONS_ENDED_MAX, Session, Sessions

NS = 1_000_000_000


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


async def sign_in(desk: Desk, key: str = KEY, then: str = "") -> tuple[int, str]:
    answer = await desk.client.post("/sign-in", data={"key": key, "then": then}, allow_redirects=False)
    return answer.status, answer.headers.get("Location", "")


async def token(desk: Desk) -> str:
    """What the forms of whoever is signed in carry."""
    page = await (await desk.client.get("/budget")).text()
    found = re.search(r'name="token" value="([^"]+)"', page)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("then", "goes"),
    [
        ("", "/budget"),
        ("/days/2026-11-30?at=12:00", "/days/2026-11-30?at=12:00"),
        ("//elsewhere.example", "/budget"),
        ("/\\elsewhere.example", "/budget"),
        ("https://elsewhere.example/", "/budget"),
        ("/" + "x" * 600, "/budget"),
        ("/a\nb", "/budget"),
    ],
)
async def test_whoever_signs_in_goes_on_here_and_nowhere_else(desk: Desk, then: str, goes: str) -> None:
    assert await sign_in(desk, then=then) == (303, goes)


async def test_the_cookie_has_no_key_and_is_not_for_scripts_or_other_sites(desk: Desk) -> None:
    answer = await desk.client.post("/sign-in", data={"key": KEY}, allow_redirects=False)
    written = answer.headers["Set-Cookie"]
    assert KEY not in written
    assert {part.strip().lower() for part in written.split(";")[1:]} == {
        "httponly", f"max-age={SESSION_S}", "path=/", "samesite=strict",
    }  # fmt: skip


async def test_over_https_the_cookie_is_for_https_alone() -> None:
    async with open_desk(trusted_proxies=("127.0.0.0/8",)) as desk:
        answer = await desk.client.post(
            "/sign-in", data={"key": KEY}, headers={"X-Forwarded-Proto": "https"}, allow_redirects=False
        )
        assert "secure" in answer.headers["Set-Cookie"].lower()


@pytest.mark.parametrize("said", ["", "wrong", "cp_aaaaaaaaaa_" + "x" * 46, "ключ"])
async def test_a_wrong_key_is_told_so_and_not_repeated(desk: Desk, said: str) -> None:
    answer = await desk.client.post("/sign-in", data={"key": said})
    page = await answer.text()
    assert answer.status == 401
    assert "This key is not known here." in page
    assert not said or said not in page
    assert COOKIE not in answer.cookies


async def test_a_key_that_spends_does_not_look(desk: Desk) -> None:
    key, _ = await desk.new_key("spend")
    assert (await sign_in(desk, key))[0] == 403


async def test_a_session_ends_with_its_key_its_hours_and_on_signing_out(desk: Desk) -> None:
    key, id = await desk.new_key("audit")
    assert (await desk.client.get("/budget", allow_redirects=False)).headers["Location"] == "/sign-in?then=/budget"
    await sign_in(desk, key)
    assert (await desk.client.get("/budget")).status == 200
    await desk.post(f"/v1/keys/{id}/revoke", {"reason": "lost"})
    assert (await desk.client.get("/budget", allow_redirects=False)).status == 303

    await sign_in(desk)
    cookie = desk.client.session.cookie_jar.filter_cookies(desk.client.make_url("/"))[COOKIE].value
    gone = await desk.client.post("/sign-out", data={"token": await token(desk)}, allow_redirects=False)
    assert (gone.status, gone.headers["Location"]) == (303, "/sign-in")
    kept = await desk.client.get("/budget", headers={"Cookie": f"{COOKIE}={cookie}"}, allow_redirects=False)
    assert kept.status == 303

    await sign_in(desk)
    desk.purse.clock += SESSION_S * NS
    assert (await desk.client.get("/budget", allow_redirects=False)).status == 303


async def test_a_cookie_that_was_not_written_here_is_none(desk: Desk) -> None:
    sessions = desk.client.app[SESSIONS]  # type: ignore[union-attr]
    now = desk.client.app[DESK].purse.now()  # type: ignore[union-attr]
    good = sessions.open("", now)
    assert sessions.read(good, now) is not None
    said, _, mac = good.partition(".")
    others = Sessions("another admin key").open("", now)
    for bad in ("", ".", f"{said}.", f"{said}.{mac[:-1]}", f"x{said}.{mac}", others, good + "x" * 600, "é.é"):
        assert sessions.read(bad, now) is None, bad


def test_web_processes_with_the_same_admin_key_believe_each_other_and_others_do_not() -> None:
    cookie = Sessions("one").open("abc", 5)
    read = Sessions("one").read(cookie, 5)
    assert read is not None
    assert read.key == "abc"
    assert Sessions("").read(Sessions("").open("abc", 5), 5) is None


def test_what_was_ended_is_remembered_within_a_limit() -> None:
    sessions = Sessions("one")
    for n in range(SESSIONS_ENDED_MAX + 1):
        sessions.end(Session(str(n), "", 100), 1)
    assert len(sessions._ended) == SESSIONS_ENDED_MAX
    sessions.end(Session("late", "", 200), 100)
    assert list(sessions._ended) == ["late"]


# --- other sites ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
async def test_a_form_from_elsewhere_changes_nothing(desk: Desk, path: str, headers: dict[str, str]) -> None:
    await sign_in(desk)
    form = {"key": KEY, "token": await token(desk)}
    answer = await desk.client.post(path, data=form, headers=headers, allow_redirects=False)
    assert answer.status == 403
    assert "Set-Cookie" not in answer.headers
    assert (await desk.client.get("/budget")).status == 200


@pytest.mark.parametrize("said", ["", "x", "é"])
async def test_a_form_without_the_sessions_token_changes_nothing(desk: Desk, said: str) -> None:
    await sign_in(desk)
    answer = await desk.client.post("/sign-out", data={"token": said}, allow_redirects=False)
    assert answer.status == 403
    assert (await desk.client.get("/budget")).status == 200


async def test_the_cookie_opens_nothing_of_the_api(desk: Desk) -> None:
    await sign_in(desk)
    assert (await desk.get("/v1/keys", key=None)).status == 401


async def test_a_form_that_is_none_is_refused(desk: Desk) -> None:
    answer = await desk.client.post("/sign-in", json={"key": KEY})
    assert answer.status == 415
