"""An audit of a day: what it says of one, every way in which a record may be wrong, and what it says is not checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest
from histories.reading import NAMES, history
from msgspec.structs import replace
from records import night, recorded, story
from tampering import FALSE_SEALS, FOUND_BY_THE_CHAIN, Tampering, cut, edited, forked
from wallets import Books, budget, moment

from engine.core import chain
from engine.core.messages import ADMIN_ASKS, Clock, Entry, Exhausted, Held, Hold, Option, Settle, Settled, Told
from engine.core.tell import read
from engine.journal import Stored
from engine.receipts import Receipt
from engine.recorded import Recorded
from projector.audit.facts import FIRST_MAX
from projector.audit.report import Report
from projector.audit.running import audit, wallet_zone
from projector.audit.shown import lines
from projector.audit.spenders import TOP
from projector.day_range import DayRange, parse
from projector.reading import CopySource
from projector.replay import BrokenRecord

CENT = 10_000_000


def day(written: str = "2026-11-30") -> DayRange:
    return parse(written, zone="UTC", now=moment("2026-11-30 12:00"))


async def audited(
    stream: Sequence[Stored], written: str = "2026-11-30", *, receipts: Sequence[Receipt] = (), redecide: bool = True
) -> Report:
    return await audit(CopySource(stream), day(written), receipts=receipts, redecide=redecide)


def receipt(stream: Sequence[Stored], seq: int) -> Receipt:
    stored = next(one for one in stream if one.seq == seq)
    return Receipt(seq, Recorded.read(stored).chain.hex())


def history_of(name: str) -> list[Stored]:
    found = []
    for line in history(name):
        raw = line.data.encode()
        message = read(raw) if line.kind == "ask" else None
        admin = message is not None and any(isinstance(ask, ADMIN_ASKS) for ask in message.asks)
        found.append(Stored(line.seq, line.ts, "admin" if admin else line.kind, raw))
    return found


# --- a record that is right -------------------------------------------------------------------------------------------


async def test_a_day_is_right_and_says_what_it_came_to() -> None:
    report = await audited(recorded(story()))
    assert (report.right, report.first_wrong, report.exit_code) == (True, None, 0)
    assert report.read["asks"] == 5
    [jev] = report.budgets
    assert (jev["limit"], jev["settled"], jev["held"], jev["extra"]) == ("1", "0.65", "0", "0")
    assert (jev["peak"], jev["holds"], jev["settles"], jev["refused"]) == ("0.65", 2, 1, {"spent": 1})
    assert jev["first_exhausted_at"] == "2026-11-30T09:03:00Z"
    assert jev["lapsed"] == 1


async def test_who_spent_what_is_by_every_label_and_the_day_of_the_hold() -> None:
    spent = (await audited(recorded(story()))).spent
    assert [(one["value"], one["calls"], one["spent"]) for one in spent["user"]["usd"]["top"]] == [
        ("bob", 1, "0.4"),
        ("alice", 1, "0.25"),
    ]
    assert spent["provider"]["usd"]["top"][0]["spent"] == "0.65"
    assert spent["key"]["usd"]["top"][0]["value"] is None


async def test_of_many_spenders_the_largest_stand_first_and_the_rest_is_added_up() -> None:
    books = Books(jev=budget("100"), twice=False).at("09:00")
    for number in range(TOP + 5):
        books.hold(f"h{number}", "1.00", user=f"u{number}")
        books.settle(f"h{number}", f"0.{10 + number}")
    found = (await audited(recorded(books))).spent["user"]["usd"]
    assert [one["value"] for one in found["top"][:2]] == ["u24", "u23"]
    assert (len(found["top"]), found["others"], found["other"]["spent"]) == (TOP, 5, "0.6")


@pytest.mark.parametrize("name", NAMES)
async def test_every_recorded_history_is_right_by_both_paths(name: str) -> None:
    report = await audited(history_of(name), "2026-10-01..2026-12-31")
    assert (report.right, report.wrong, report.totals_differ, report.difference) == (True, [], [], None)
    assert report.budgets


async def test_every_flag_stands_in_the_report_with_its_sequences() -> None:
    books = Books(jev=budget("10"), other=budget("1000 neurons"), remember_s=3_600, twice=False)
    books.at("09:00")
    books.hold("over", "0.10")
    books.settle("over", "0.20")
    books.hold("new", "0.10")
    books.settle("new", "0.10 + 5 neurons")
    books.hold("two", "0.10 + 5 neurons")
    books.settle("two", "0.05")
    books.hold("guess", "0.10")
    books.estimate("guess", "0.05")
    books.settle("guess", "0.06")
    books.settle("guess", "0.07")
    books.settle("nobody", "0.01")
    books.hold("lapses", "0.10", ttl_s=60)
    books.at("09:30").settle("lapses", "0.05")
    books.at("11:00").settle("old", "0.01", held_at="09:00")
    report = await audited(recorded(books))
    expected = {
        "overrun": 1, "unheld": 1, "unreported": 1, "estimated": 1, "corrected": 2, "conflict": 1, "stray": 1,
        "lapsed": 1, "late": 1, "forgotten": 1,
    }  # fmt: skip
    assert {name: report.flags[name]["count"] for name in expected} == expected
    assert report.flags["overrun"]["first"] == [3]
    assert report.flags["late"]["first"] == report.flags["lapsed"]["first"] == [14]
    assert report.right


async def test_only_the_first_sequences_of_a_flag_are_named() -> None:
    books = Books(twice=False).at("09:00")
    for number in range(FIRST_MAX + 3):
        books.settle(f"s{number}", "0.01")
    noted = (await audited(recorded(books))).flags["stray"]
    assert (noted["count"], noted["first"]) == (FIRST_MAX + 3, list(range(2, 2 + FIRST_MAX)))


async def test_what_operators_did_stands_with_its_reason() -> None:
    books = Books(twice=False).at("09:00")
    books.freeze("all", reason="an incident")
    books.hold("a", "0.10")
    books.at("10:00").thaw("all")
    books.adjust("-0.05", reason="refunded")
    books.change(jev=budget("2.00"))
    report = await audited(recorded(books))
    acts = [(act["what"], act["about"], act.get("reason", "")) for act in report.operators]
    assert acts == [
        ("plan", "1 budgets", ""),
        ("freeze", "all", "an incident"),
        ("thaw", "all", ""),
        ("adjust", "jev of 2026-11-30", "refunded"),
        ("plan", "1 budgets", ""),
    ]
    assert report.flags["refused: frozen"]["count"] == 1


async def test_what_counted_to_the_day_after_it_was_over_is_shown_apart() -> None:
    books = Books(twice=False).at("23:58")
    books.hold("late", "0.40")
    books.hold("lapses", "0.10", ttl_s=300)
    books.hold("intime", "0.20", ttl_s=60)
    books.at("2026-12-01 00:01").settle("late", "0.30")
    books.at("2026-12-01 00:10").tick()
    report = await audited(recorded(books))
    [jev] = report.budgets
    assert (jev["settled"], jev["after"], jev["after_events"]) == ("0.6", "0.4", 2)
    assert {name: noted["count"] for name, noted in report.after.items()} == {"settled": 1, "lapsed": 1}
    assert report.flags["lapsed"]["count"] == 1
    assert (report.over, report.open["count"]) == (True, 2)
    assert {one["id"]: one["held"]["usd"] for one in report.open["first"]} == {"late": "0.4", "lapses": "0.1"}


async def test_m15_between_due_time_and_sweep_a_hold_is_open_at_the_end_of_the_day_only_if_due_later() -> None:
    for expiry, open_ in (("23:59:59", 0), ("2026-12-01 00:00:00", 1)):
        books = Books(twice=False).at("23:59")
        books.hold("a", "0.40", ttl_s=(moment(expiry) - moment("23:59")) // 10**9)
        books.at("2026-12-01 00:30").tick()
        report = await audited(recorded(books))
        assert report.open["count"] == open_, expiry


async def test_m16_a_settle_after_the_sweep_is_counted_and_flagged_in_the_audit() -> None:
    books = Books(on_lapse="release", twice=False).at("09:00")
    books.hold("a", "0.40")
    books.at("09:20").settle("a", "0.35")
    report = await audited(recorded(books))
    assert report.budgets[0]["settled"] == "0.35"
    assert (report.flags["late"]["count"], report.flags["corrected"]["count"]) == (1, 1)


async def test_each_user_of_a_budget_is_a_meter_and_the_fullest_is_named() -> None:
    books = Books(jev=budget("1.00", each="user"), twice=False).at("09:00")
    books.hold("a", "0.40", user="alice")
    books.hold("b", "0.50", user="bob")
    [jev] = (await audited(recorded(books))).budgets
    assert (jev["meters"], jev["used"], jev["fullest"]) == (2, "0.9", {"value": "bob", "used": "0.5"})


async def test_a_stamp_that_a_clock_skips_is_decided_again_at_the_moment_before() -> None:
    books = Books(twice=False).at("09:00")
    books.hold("a", "0.40", ttl_s=60)
    books.skipped = True
    books.at("09:20").hold("b", "0.10", by="09:20")
    books.skipped = False
    books.at("09:00:30").send(Clock("k", moment("09:10"), moment("09:30"), "a dead battery"))
    assert (await audited(recorded(books))).right


async def test_a_wallet_that_slept_for_weeks_is_right_and_so_is_its_seal() -> None:
    books = Books(twice=False).at("09:00")
    books.hold("a", "0.40")
    books.settle("a", "0.30")
    books.at("2026-12-24 09:00").tick()
    report = await audited(recorded(books))
    assert (report.right, report.wrong) == (True, [])
    assert report.seals[0]["budgets"]["jev"]["settled"] == "0.3"


async def test_a_day_with_nothing_in_it_is_right() -> None:
    report = await audited(recorded(story()), "2026-11-28")
    assert (report.right, report.asks, report.budgets, report.flags) == (True, 0, [], {})


async def test_the_zone_is_that_of_the_newest_plan_that_was_told() -> None:
    assert await wallet_zone(CopySource(recorded(story()))) == "UTC"


# --- a record that is not ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", FOUND_BY_THE_CHAIN)
async def test_m19_every_tampering_is_caught_and_the_first_bad_sequence_named(what: str) -> None:
    tamper, first = FOUND_BY_THE_CHAIN[what]
    stream = recorded(story())
    with pytest.raises(BrokenRecord) as broken:
        await audited(tamper(stream))
    assert broken.value.seq == first


async def test_m19_a_record_that_was_cut_off_is_caught_by_a_receipt_and_only_by_one() -> None:
    stream = recorded(story())
    shorter = cut(8)(stream)
    with pytest.raises(BrokenRecord, match="ends at sequence 8") as broken:
        await audited(shorter, receipts=[receipt(stream, 9)])
    assert broken.value.seq == 9
    assert (await audited(shorter)).right
    assert (await audited(shorter, receipts=[receipt(stream, 8)])).right


async def test_m19_a_fork_with_its_chain_made_anew_is_caught_by_a_receipt_from_before() -> None:
    stream = recorded(story())
    other = forked(edited(2, b'"user":"alice"', b'"user":"mallo"'))(stream)
    assert (await audited(other)).right
    for told in (7, 8, 9):
        with pytest.raises(BrokenRecord, match="another chain") as broken:
            await audited(other, receipts=[receipt(stream, told)])
        assert broken.value.seq == told


def heard(stream: list[Stored], seen: Receipt) -> list[Stored]:
    """Another hold behind the whole story, whose sender had heard the told of that receipt; and its told."""
    books = story()
    books.at("09:30").hold("d", "0.01")
    more = recorded(books, each=1)[-1]
    ask = replace(recorded(books)[6], seq=10, seen=str(seen))
    told = msgspec.json.decode(more.data, type=Told)
    entry = replace(told.told[0], seq=10)
    body = msgspec.json.encode(replace(told, upto=10, told=[entry])).removesuffix(b"}")
    linked = chain.link(Recorded.read(stream[-1]).chain, [(ask.seq, ask.ts, ask.data)], body)
    return [*stream, ask, Stored(11, ask.ts, "told", chain.seal(body, linked))]


async def test_m19_a_receipt_that_came_with_an_ask_is_held_against_the_record() -> None:
    stream = recorded(story())
    report = await audited(heard(stream, receipt(stream, 8)))
    assert (report.right, report.read["receipts"]) == (True, 1)
    other = forked(edited(2, b'"user":"alice"', b'"user":"mallo"'))(stream)
    with pytest.raises(BrokenRecord, match="another chain") as broken:
        await audited(heard(other, receipt(stream, 8)))
    assert broken.value.seq == 8
    for told in (6, 12):  # where no told stands, or could not have stood yet
        with pytest.raises(BrokenRecord, match="no told stands there") as broken:
            await audited(heard(stream, Receipt(told, "0" * 64)))
        assert broken.value.seq == told


def change(seq: int, altered: Callable[[Entry], Entry]) -> Tampering:
    """What was told of one message is otherwise, and every chain behind it made anew."""
    return forked(lambda stream: stream, told=lambda entry: altered(entry) if entry.seq == seq else entry)


def refused_though_it_fits(entry: Entry) -> Entry:
    held = entry.out[0]
    assert isinstance(held, Held)
    line = held.budgets["jev"]
    no = Exhausted(held.id, "spent", "jev", "usd", line.period, settled=25 * CENT, held=0, extra=0, limit=line.limit,
                   remaining=75 * CENT, fits=75 * CENT, resets_at=line.end)  # fmt: skip
    return replace(entry, out=[no])


async def test_another_decision_is_named_though_every_chain_is_right() -> None:
    stream = change(5, lambda entry: replace(entry, out=[replace(entry.out[0], why="busy")]))(recorded(story()))
    report = await audited(stream)
    assert (report.right, report.first_wrong, report.exit_code) == (False, 5, 1)
    assert report.difference is not None
    assert (report.difference.seq, report.difference.told, report.difference.outcome) == (5, 9, 0)
    assert '"why":"busy"' in report.difference.said
    assert '"why":"spent"' in report.difference.decided
    text = "\n".join(lines(report))
    assert "SOMETHING IS OFF, first at sequence 5." in text


async def test_without_deciding_again_another_refusal_passes_and_the_report_says_that_it_would() -> None:
    stream = change(5, lambda entry: replace(entry, out=[replace(entry.out[0], why="busy")]))(recorded(story()))
    report = await audited(stream, redecide=False)
    assert report.right
    assert any("No ask was decided again" in line for line in report.unchecked)


async def test_what_is_left_must_be_what_everything_before_adds_up_to() -> None:
    def more_left(entry: Entry) -> Entry:
        settled = entry.out[0]
        assert isinstance(settled, Settled)
        left = {name: replace(one, remaining=one.remaining + CENT) for name, one in settled.left.items()}
        return replace(entry, out=[replace(settled, left=left)])

    report = await audited(change(3, more_left)(recorded(story())), redecide=False)
    assert (report.right, report.first_wrong) == (False, 3)
    assert "add up to" in report.wrong[0].what


async def test_a_permission_above_its_limit_is_named_by_the_second_path_alone() -> None:
    def lower(entry: Entry) -> Entry:
        held = entry.out[0]
        assert isinstance(held, Held)
        line = held.budgets["jev"]
        lines_ = {"jev": replace(line, limit=60 * CENT, remaining=-5 * CENT)}
        return replace(entry, out=[replace(held, budgets=lines_)])

    report = await audited(change(4, lower)(recorded(story())), redecide=False)
    assert (report.first_wrong, report.wrong[0].what) == (4, "jev of 2026-11-30 is granted more than its limit")


@pytest.mark.parametrize("what", FALSE_SEALS)
async def test_m19_a_false_seal_is_named_though_every_chain_is_right(what: str) -> None:
    stream = change(5, FALSE_SEALS[what][0])(recorded(night()))
    report = await audited(stream)
    assert (report.right, report.first_wrong) == (False, 5)


async def test_a_lapse_that_is_left_out_is_named() -> None:
    report = await audited(change(6, lambda entry: replace(entry, lapsed=[]))(recorded(story())))
    assert (report.right, report.first_wrong) == (False, 6)
    assert report.totals_differ
    assert report.totals_differ[0].budget == "jev"


async def test_a_settlement_of_what_never_was_is_named() -> None:
    stream = change(3, lambda entry: replace(entry, out=[replace(entry.out[0], id="nobody")]))(recorded(story()))
    report = await audited(stream, redecide=False)
    assert report.first_wrong == 3
    assert "is not known" in report.wrong[0].what


async def test_a_permission_that_was_withheld_is_named() -> None:
    report = await audited(change(4, refused_though_it_fits)(recorded(story())))
    assert (report.right, report.first_wrong) == (False, 4)


async def test_asks_without_a_told_are_said_not_to_be_counted() -> None:
    report = await audited(cut(8)(recorded(story())))
    assert any(line.startswith("2 ask messages at the end have no told yet") for line in report.unchecked)


async def test_the_report_is_one_document_and_its_text_fits_a_terminal() -> None:
    report = await audited(recorded(story()))
    document = msgspec.json.decode(msgspec.json.encode(report))
    assert document["right"] is True
    text = list(lines(report))
    assert any(line.startswith("All is right") for line in text)
    assert any(line == "Not checked:" for line in text)


async def test_a_message_of_many_asks_names_the_outcome_that_differs() -> None:
    books = Books(twice=False).at("09:00")
    by = moment("09:30")
    books.send(*(Hold(f"h{n}", [Option({"usd": CENT})], by) for n in range(3)), Settle("h1", {"usd": CENT}))

    def another(entry: Entry) -> Entry:
        return replace(entry, out=[*entry.out[:2], replace(entry.out[2], option=1), entry.out[3]])

    report = await audited(change(2, another)(recorded(books)))
    assert report.difference is not None
    assert (report.difference.seq, report.difference.outcome) == (2, 2)
