"""What an admin does on the pages: nothing without a yes, once for one form, on the record with who did it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape

import pytest
from browser.office import TODAY, office
from desk_client import KEY, Desk

from engine.core.messages import Adjust, Freeze, Restore, Revoke, Thaw

FREEZE = {"scope": "jev", "reason": "a test"}


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with office() as desk:
        await desk.client.post("/sign-in", data={"key": KEY})
        yield desk


async def token(desk: Desk) -> str:
    found = re.search(r'name="token" value="([^"]+)"', await (await desk.client.get("/budget")).text())
    assert found is not None
    return found[1]


async def send(desk: Desk, path: str, **form: str) -> tuple[int, str, str]:
    """Status, where it leads, and the page."""
    form = {"token": await token(desk), **form}
    answer = await desk.client.post(path, data=form, allow_redirects=False)
    return answer.status, answer.headers.get("Location", ""), unescape(await answer.text())


def fields(page: str) -> dict[str, str]:
    """What the form of a confirmation carries."""
    form = page.partition('action="/acts/')[2].partition("</form>")[0]
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))


async def confirmed(desk: Desk, act: str, **form: str) -> dict[str, str]:
    """Ask for it, see the question, say yes."""
    status, _, page = await send(desk, f"/acts/{act}", **form)
    assert status == 200, page
    assert desk.purse.asked == []
    yes = fields(page)
    assert yes["sure"] == "yes"
    status, goes, page = await send(desk, f"/acts/{act}", **yes)
    assert status == 303, page
    assert goes.endswith(f"done={act}")
    return yes


async def test_a_freeze_is_asked_once_more_then_done_and_lifted_again(desk: Desk) -> None:
    yes = await confirmed(desk, "freeze", **FREEZE, back="/budget?budget=jev")
    [freeze] = desk.purse.asked
    assert freeze == Freeze(yes["id"], "jev", "a test", "admin")
    assert "jev" in (await (await desk.client.get("/budget?done=freeze")).text()).partition("New calls are refused")[2]
    desk.purse.asked.clear()
    await confirmed(desk, "thaw", scope="jev")
    [thaw] = desk.purse.asked
    assert isinstance(thaw, Thaw)
    assert desk.purse.wallet.frozen == {}


async def test_a_freeze_for_some_hours_says_until_when_before_it_is_done(desk: Desk) -> None:
    _, _, page = await send(desk, "/acts/freeze", **FREEZE, hours="4")
    assert "2026-11-30T18:05:00.000Z" in page
    await send(desk, "/acts/freeze", **fields(page))
    [freeze] = desk.purse.asked
    assert isinstance(freeze, Freeze)
    assert freeze.until == desk.purse.clock + 4 * 3600 * 10**9


async def test_the_same_form_sent_twice_adjusts_once(desk: Desk) -> None:
    said = {"budget": "jev", "period": TODAY, "amount": "-0.25", "reason": "counted twice"}
    yes = await confirmed(desk, "adjust", **said)
    status, _, _ = await send(desk, "/acts/adjust", **yes)
    assert status == 303
    assert desk.purse.asked[0] == desk.purse.asked[1] == Adjust(
        id=yes["id"], budget="jev", period=TODAY, amount=-250_000_000, reason="counted twice", by_whom="admin"
    )  # fmt: skip
    assert desk.purse.wallet.meters()["jev", None, TODAY][0] == -250_000_000


async def test_a_label_is_revoked_and_restored(desk: Desk) -> None:
    await confirmed(desk, "revoke", label="user", value="mallory", reason="leaked")
    assert isinstance(desk.purse.asked.pop(), Revoke)
    assert desk.purse.wallet.revoked == {("user", "mallory"): "leaked"}
    await confirmed(desk, "restore", label="user", value="mallory")
    assert isinstance(desk.purse.asked.pop(), Restore)
    assert desk.purse.wallet.revoked == {}


@pytest.mark.parametrize(
    ("act", "form", "says"),
    [
        ("freeze", {"scope": "nothing", "reason": "r"}, "scope"),
        ("freeze", {"scope": "all"}, "reason"),
        ("freeze", {**FREEZE, "hours": "5"}, "hours"),
        ("freeze", {"scope": "all", "reason": "x" * 300}, "reason"),
        ("adjust", {"budget": "jev", "period": "some day", "amount": "1", "reason": "r"}, "period"),
        ("adjust", {"budget": "jev", "period": TODAY, "amount": "much", "reason": "r"}, "amount"),
        ("revoke", {"label": "", "value": "x", "reason": "r"}, "label"),
    ],
)
async def test_what_makes_no_sense_is_said_by_its_field_and_not_asked(
    desk: Desk, act: str, form: dict[str, str], says: str
) -> None:
    status, _, page = await send(desk, f"/acts/{act}", **form)
    assert status == 400
    assert says in page
    assert desk.purse.asked == []


async def test_an_act_there_is_not_is_not_found(desk: Desk) -> None:
    assert (await send(desk, "/acts/destroy"))[0] == 404


async def test_where_it_goes_on_is_a_page_here(desk: Desk) -> None:
    _, _, page = await send(desk, "/acts/freeze", **FREEZE, back="https://elsewhere.example/")
    assert fields(page)["back"] == "/budget"


async def test_an_auditor_may_look_and_not_act(desk: Desk) -> None:
    key, _ = await desk.new_key("audit")
    await desk.client.post("/sign-in", data={"key": key})
    for path in ("/acts/freeze", "/keys"):
        status, _, page = await send(desk, path, **FREEZE, role="admin", sure="yes", form="f")
        assert status == 403
        assert "it takes a key with the role admin" in page
    assert (await desk.client.get("/keys")).status == 403
    assert desk.purse.asked == []


@pytest.mark.parametrize("path", ["/acts/freeze", "/keys"])
@pytest.mark.parametrize("headers", [{"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}])
async def test_another_site_does_nothing_in_an_admins_name(desk: Desk, path: str, headers: dict[str, str]) -> None:
    form = {"token": await token(desk), **FREEZE, "sure": "yes", "role": "admin", "form": "f"}
    assert (await desk.client.post(path, data=form, headers=headers)).status == 403
    for stolen in ("", "x"):
        assert (await desk.client.post(path, data={**form, "token": stolen})).status == 403
    assert desk.purse.asked == []
    assert (await desk.get("/v1/keys"))["keys"] == []


# --- keys -------------------------------------------------------------------------------------------------------------


async def test_a_key_is_shown_once_and_works(desk: Desk) -> None:
    form = {"role": "spend", "user": "alice", "note": "laptop", "days": "30", "names": "user", "form": "f1"}
    status, _, page = await send(desk, "/keys", **form)
    found = re.search(r"cp_\w+", page)
    assert (status, found is not None) == (200, True)
    assert found is not None
    [kept] = (await desk.get("/v1/keys"))["keys"]
    assert (kept["user"], kept["note"], kept["names"], kept["made_by"]) == ("alice", "laptop", ["user"], "admin")
    assert (await desk.get("/v1/holds/none", key=found[0])).status == 404
    listed = await (await desk.client.get("/keys")).text()
    assert found[0] not in listed
    assert kept["id"] in listed


async def test_a_page_that_is_loaded_again_makes_no_other_key(desk: Desk) -> None:
    await send(desk, "/keys", role="audit", form="f1")
    _, _, page = await send(desk, "/keys", role="audit", form="f1")
    assert "This form was sent before." in page
    assert not re.search(r"cp_\w{20}", page)
    assert len((await desk.get("/v1/keys"))["keys"]) == 1


async def test_a_key_is_revoked_when_it_is_confirmed(desk: Desk) -> None:
    _, id = await desk.new_key("spend")
    await confirmed(desk, "revoke-key", key=id, reason="lost")
    [kept] = (await desk.get("/v1/keys"))["keys"]
    assert (kept["state"], kept["reason"], kept["revoked_by"]) == ("revoked", "lost", "admin")
    assert isinstance(desk.purse.asked[0], Revoke)


async def test_a_key_that_makes_no_sense_is_said_by_its_field(desk: Desk) -> None:
    status, _, page = await send(desk, "/keys", role="audit", names="user", form="f")
    assert status == 400
    assert "role" in page
