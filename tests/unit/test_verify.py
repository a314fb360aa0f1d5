"""The stand-alone verifier: what holds it lets through, and of what does not it names the first bad sequence."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from histories.reading import FOLDER, NAMES, expected
from recorded_stories import Writer, projected, story, write_raw
from records import night, recorded
from records import story as six_messages
from tampering import FALSE_SEALS, FOUND_BY_THE_CHAIN
from wallets import Books, amounts, budget, moment

from engine.core.messages import (
    ApplyPlan,
    Clock,
    Entry,
    Exhausted,
    Held,
    Hold,
    KnownUse,
    Lapsed,
    Line,
    Loss,
    Observed,
    Option,
    Settle,
    Settled,
)
from engine.core.periods import period_at
from engine.core.plan import Plan
from engine.journal import Stored

VERIFY = Path(__file__).parents[2] / "examples" / "verify.py"
CENT = 10_000_000
STORIES = 12


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("standalone_verify", VERIFY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


verify = load()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


def proved(stream: Sequence[Stored], file: Path, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = verify.verify(write_raw(list(stream), file), **given).summary()
    return found


def bad(stream: Sequence[Stored], file: Path, **given: Any) -> Any:
    with pytest.raises(verify.Bad) as caught:
        verify.verify(write_raw(list(stream), file), **given)
    return caught.value


def chain_of(stored: Stored) -> str:
    return stored.data[-66:-2].decode()


# --- what holds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_history_holds(name: str) -> None:
    found = verify.verify(FOLDER / f"{name}.jsonl")
    ending = expected(name)
    assert (found.chain.hex(), found.upto, found.books.at) == (ending.chain, ending.upto, ending.at)
    mine = {
        (meter.budget, key[2], meter.settled, meter.held, meter.extra, meter.figure)
        for key, meter in found.books.meters.items()
        if key[1] == found.books.generations[meter.budget]
    }
    there = {(budget, each, *figures) for budget, each, _, *figures in ending.meters}
    assert there <= mine, "every balance of the history, and maybe meters that the wallet has let go"
    assert sorted(found.books.open) == ending.open


@pytest.mark.parametrize("seed", range(STORIES))
def test_a_made_up_day_holds_and_adds_up_to_the_projectors_totals(seed: int, file: Path) -> None:
    stream = story(seed, steps=100)
    found = verify.verify(write_raw(stream, file))
    totals = projected(stream).totals
    mine = {key: (total.settled, total.held, total.extra) for key, total in found.books.totals.items()}
    theirs = {key: (total.settled, total.held, total.extra) for key, total in totals.items()}
    nothing = (0, 0, 0)
    assert {key: figures for key, figures in mine.items() if figures != nothing} == {
        key: figures for key, figures in theirs.items() if figures != nothing
    }
    assert found.last == len(stream)


def test_how_tolds_group_messages_changes_no_total(books: Books, file: Path) -> None:
    one, all_ = proved(recorded(books, each=1), file), proved(recorded(books, each=64), file)
    assert one["totals"] == all_["totals"] != []
    assert one["chain"] != all_["chain"]


def test_amounts_are_integers_and_exact_text(books: Books, file: Path) -> None:
    [total] = proved(recorded(books), file)["totals"]
    assert (total["settled"], total["settled_text"]) == (25 * CENT, "0.25")
    assert (total["held"], total["held_text"], total["unit"]) == (40 * CENT, "0.4", "usd")


def test_asks_without_a_told_are_said_to_be_uncovered(books: Books, file: Path) -> None:
    assert proved(recorded(books)[:-1], file)["untold"] == 2


def test_bytes_that_are_no_text_and_asks_that_cannot_be_read_hold(file: Path) -> None:
    books = Books().at("09:00")
    books.send_raw(b"\xff\x00 not json")
    books.send_raw(b"not json either")
    books.hold("a", "0.40")
    assert proved(recorded(books), file)["outcomes"] == {"held": 1, "invalid": 2, "planned": 1}
    assert '"base64"' in file.read_text()


def test_a_stamp_that_a_clock_skips_holds_and_without_the_clock_it_does_not(file: Path) -> None:
    found = {}
    for clock in (True, False):
        books = Books().at("09:00")
        books.hold("a", "0.40", ttl_s=60)
        books.skipped = True
        books.at("09:20").hold("b", "0.10", by="09:20")
        books.skipped = False
        if clock:
            books.at("09:00:30").send(Clock("k", moment("09:10"), moment("09:30"), "a dead battery"))
        found[clock] = recorded(books, each=8)
    assert proved(found[True], file)["outcomes"] == {"done": 1, "held": 2, "planned": 1}
    failed = bad(found[False], file)
    assert (failed.seq, "its moment is" in failed.why) == (3, True)


# --- a loss -----------------------------------------------------------------------------------------------------------


def whole() -> list[Stored]:
    """1 the plan and 2 its told, 3 and 4 asks and 5 their told, 6 an ask and 7 its told."""
    writer = begun()
    writer.ask(moment("09:02"), [penny("lost")])
    writer.tell()
    writer.ask(moment("09:03"), [penny("b")])
    writer.tell()
    return writer.stream


def begun() -> Writer:
    writer = Writer()
    writer.ask(moment("09:00"), [ApplyPlan("p", Plan({"jev": budget("1.00")}), "")])
    writer.tell()
    writer.ask(moment("09:01"), [penny("a")])
    return writer


def penny(id: str, said: str = "0.40") -> Hold:
    return Hold(id, [Option(amounts(said))], moment("09:59"))


def gone_on() -> list[Stored]:
    """4 and 5 are lost, and with them what 7 follows from. An operator goes on at 8: then 3 and 6 are told anew."""
    writer = begun()
    writer.seq = 5
    writer.ask(moment("09:03"), [penny("b")])
    writer.put(whole()[6])
    writer.ask(moment("09:05"), [Loss("l", 4, 7, "a bit flipped", "ops", [KnownUse("jev", "2026-11-30", 80 * CENT)])])
    writer.tell()
    return writer.stream


def test_a_loss_passes_over_its_gap_and_voids_the_tolds_behind_it(file: Path) -> None:
    found = proved(gone_on(), file)
    assert (found["losses"], found["void_tolds"], found["untold"]) == ([[4, 7]], 1, 0)
    assert found["outcomes"] == {"done": 1, "held": 2, "planned": 1}


def test_a_gap_without_a_loss_is_named_by_its_first_sequence(file: Path) -> None:
    stream = whole()
    assert bad([*stream[:3], *stream[5:]], file).seq == 4
    proved(stream, file)


def test_a_loss_of_another_range_passes_over_nothing(file: Path) -> None:
    stream = gone_on()
    narrower = stream[-2].data.replace(b'"from_seq":4', b'"from_seq":5')
    stream[-2] = msgspec.structs.replace(stream[-2], data=narrower)
    assert bad(stream, file).seq == 4


def test_a_receipt_from_a_lost_range_is_excused(file: Path) -> None:
    lost, void = whole()[4], whole()[6]
    found = proved(gone_on(), file, receipts={5: chain_of(lost), 7: chain_of(void)})
    assert (found["receipts"], found["receipts_in_a_loss"]) == (0, 2)


# --- tampering: the chain ---------------------------------------------------------------------------------------------


@pytest.fixture
def books() -> Books:
    """Messages 1 to 4: a plan, a hold, its settlement, a hold. Told 5 is of 1 and 2, told 6 of 3 and 4."""
    books = Books().at("09:00")
    books.hold("a", "0.40", price_book="book-1")
    books.settle("a", "0.25")
    books.hold("b", "0.40", price_book="book-1")
    return books


def edit(seq: int, old: bytes, new: bytes) -> Callable[[list[Stored]], list[Stored]]:
    def change(stream: list[Stored]) -> list[Stored]:
        assert old in stream[seq - 1].data
        edited = msgspec.structs.replace(stream[seq - 1], data=stream[seq - 1].data.replace(old, new, 1))
        return [*stream[: seq - 1], edited, *stream[seq:]]

    return change


def renumbered(stream: list[Stored]) -> list[Stored]:
    return [msgspec.structs.replace(stored, seq=seq) for seq, stored in enumerate(stream, start=1)]


TAMPERINGS: dict[str, tuple[Callable[[list[Stored]], list[Stored]], int, int | None]] = {
    # what was done: how, the first bad sequence, the first message that may be the cause
    "edit: an amount that was asked": (edit(3, b"250000000", b"150000000"), 6, 3),
    "edit: an amount that was told": (edit(6, b"250000000", b"150000000"), 6, 3),
    "edit: who asked": (edit(2, b'"id":"a"', b'"id":"z"'), 5, 1),
    "edit: when it was asked": (
        lambda stream: [msgspec.structs.replace(stream[0], ts=stream[0].ts + 1), *stream[1:]],
        5,
        1,
    ),
    "delete: an ask": (lambda stream: [*stream[:2], *stream[3:]], 3, None),
    "delete: an ask, and the rest numbered anew": (lambda s: renumbered([*s[:2], *s[3:]]), 5, 3),
    "delete: a told": (lambda stream: [*stream[:4], stream[5]], 5, None),
    "delete: a told, and the rest numbered anew": (lambda s: renumbered([*s[:4], s[5]]), 5, 1),
    "insert: an ask that stands twice": (lambda stream: [*stream[:2], stream[1], *stream[2:]], 3, None),
    "insert: an ask, and the rest numbered anew": (lambda s: renumbered([*s[:2], s[1], *s[2:]]), 7, 3),
    "insert: a told twice, numbered on": (lambda stream: renumbered([*stream, stream[-1]]), 7, None),
    "swap: two asks": (lambda stream: [stream[0], stream[2], stream[1], *stream[3:]], 2, None),
    "swap: two asks under each other's numbers": (lambda s: renumbered([s[0], s[2], s[1], *s[3:]]), 5, 1),
    "swap: two tolds under each other's numbers": (lambda s: renumbered([*s[:4], s[5], s[4]]), 5, 1),
    "wrong price book: another than the hold was made by": (edit(4, b"book-1", b"book-2"), 6, 3),
    "a told that is cut off": (edit(6, b'"}', b""), 6, 3),
    "a told that is something else": (
        lambda stream: [*stream[:5], msgspec.structs.replace(stream[5], data=b'{"v":1}')],
        6,
        3,
    ),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_what_was_tampered_with_is_named(books: Books, what: str, file: Path) -> None:
    stream = recorded(books)
    change, seq, since = TAMPERINGS[what]
    proved(stream, file)
    failed = bad(change(stream), file)
    assert (failed.seq, failed.since) == (seq, since), failed.why


@pytest.mark.parametrize("what", FOUND_BY_THE_CHAIN)
def test_what_the_audit_finds_by_the_chain_is_found_here_as_well_at_the_same_sequence(what: str, file: Path) -> None:
    tamper, seq = FOUND_BY_THE_CHAIN[what]
    failed = bad(tamper(recorded(six_messages())), file)
    assert failed.seq == seq, failed.why


@pytest.mark.parametrize("kept", range(1, 6))
def test_an_end_that_was_cut_off_is_shown_by_a_receipt_alone(books: Books, kept: int, file: Path) -> None:
    stream = recorded(books)
    receipts = {6: chain_of(stream[5])}
    proved(stream[:kept], file)
    assert proved(stream, file, receipts=receipts)["receipts"] == 1
    failed = bad(stream[:kept], file, receipts=receipts)
    assert (failed.seq, "receipt for 6" in failed.why) == (kept + 1, True)


def test_an_export_that_was_cut_off_says_so_itself(books: Books, file: Path) -> None:
    stream = recorded(books)
    write_raw(stream[:4], file)
    head = {"export": "raw", "v": 1, "wallet": "main", "first_seq": 1, "last_seq": 6}
    file.write_bytes(msgspec.json.encode(head) + b"\n" + file.read_bytes())
    with pytest.raises(verify.Bad) as caught:
        verify.verify(file)
    assert caught.value.seq == 5


def test_a_fork_holds_by_itself_and_is_shown_by_a_receipt(books: Books, file: Path) -> None:
    """Whoever can write the whole stream anew can make another that holds; a receipt kept elsewhere shows it."""
    other = Books().at("09:00")
    other.hold("a", "0.40", price_book="book-1")
    other.settle("a", "0.15")
    other.hold("b", "0.40", price_book="book-1")
    true, forged = recorded(books), recorded(other)
    assert true[4] == forged[4]
    receipts = {5: chain_of(true[4]), 6: chain_of(true[5])}
    proved(true, file, receipts=receipts)
    proved(forged, file)
    assert bad(forged, file, receipts=receipts).seq == 6


def test_a_receipt_for_what_is_no_told_is_named(books: Books, file: Path) -> None:
    stream = recorded(books)
    assert bad(stream, file, receipts={3: chain_of(stream[5])}).seq == 3


def test_what_a_sender_had_been_told_must_stand_there(file: Path) -> None:
    writer = Writer()
    writer.ask(moment("09:00"), [ApplyPlan("p", Plan({"jev": budget("1.00")}), "")])
    writer.tell()
    writer.ask(moment("09:01"), [penny("a")], seen=f"2 {writer.chain.hex()}")
    proved(writer.stream, file)
    writer.ask(moment("09:02"), [penny("b")], seen=f"2 {'0' * 64}")
    writer.ask(moment("09:03"), [penny("c")], seen="no receipt at all")
    assert bad(writer.stream, file).seq == 4


def test_every_hold_must_name_a_price_book_that_is_given(books: Books, file: Path) -> None:
    stream = recorded(books)
    assert proved(stream, file, price_books=["book-1"])["price_books"] == {"book-1": 2}
    assert bad(stream, file, price_books=["book-2"]).seq == 2


# --- tampering by somebody who makes a right chain --------------------------------------------------------------------


def forged(books: Books, seq: int, change: Callable[[Entry], Entry]) -> list[Stored]:
    """The stream as a lying engine would write it: its chain is right, its words about message `seq` are not."""
    entries = [change(entry) if entry.seq == seq else entry for entry in books.entries]
    assert entries != books.entries
    return recorded(books, entries=entries)


def outcome(**fields: object) -> Callable[[Entry], Entry]:
    """The entry with these fields of its one outcome changed."""
    return lambda entry: msgspec.structs.replace(entry, out=[msgspec.structs.replace(entry.out[0], **fields)])


def line(**fields: object) -> Callable[[Entry], Entry]:
    """The entry with these fields of a held's line changed."""

    def change(entry: Entry) -> Entry:
        [held] = entry.out
        assert isinstance(held, Held)
        lines = {"jev": msgspec.structs.replace(held.budgets["jev"], **fields)}
        return msgspec.structs.replace(entry, out=[msgspec.structs.replace(held, budgets=lines)])

    return change


def day() -> Books:
    """2 holds 0.40, 3 settles 0.25, 4 holds 0.50, 5 is refused, 6 observes, 7 lapses what 4 held, 8 adjusts."""
    books = Books(jev=budget("1.00", source="cloudflare")).at("09:00")
    books.hold("a", "0.40")
    books.settle("a", "0.25")
    books.hold("b", "0.50", ttl_s=60)
    books.hold("c", "0.90")
    books.observe("0.30")
    books.at("09:02").tick()
    books.adjust("-0.05")
    return books


LIES: dict[str, tuple[int, Callable[[Entry], Entry], str]] = {
    "more is left than there is": (2, line(remaining=70 * CENT), "remain"),
    "the limit is larger than the plan's": (2, line(limit=200 * CENT, remaining=160 * CENT), "another limit"),
    "more was granted than asked": (2, outcome(amounts={"usd": 50 * CENT}), "was not asked"),
    "a budget was left out": (2, outcome(budgets={}), "without one of the budgets"),
    "the hold lives longer": (2, outcome(expires_at=moment("10:30")), "another time"),
    "less was charged than reported": (3, outcome(charged={"usd": 15 * CENT}), "what was asked makes"),
    "more came back": (3, outcome(released={"usd": 25 * CENT}), "releases"),
    "an overrun that was none": (3, outcome(flags=["overrun"]), "bears the flag overrun"),
    "a refusal with other figures": (5, outcome(settled=95 * CENT), "do not add up"),
    "the figure raised by nothing": (6, outcome(raised_by=0), "where the figure raises it"),
    "a lapse that charges nothing": (
        7,
        lambda entry: msgspec.structs.replace(entry, lapsed=[Lapsed("b", {"usd": 0})]),
        "lapses a hold at",
    ),
    "a lapse that was left out": (7, lambda entry: msgspec.structs.replace(entry, lapsed=[]), "whose time is over"),
    "an adjustment of another day": (8, outcome(line=Line("2026-11-29", 0, 1, 0, 0)), "another period"),
    "a settlement that was refused": (
        3,
        lambda entry: msgspec.structs.replace(entry, out=[Held("a", 0, {}, {}, 0, 0)]),
        "tells held",
    ),
    "an outcome too many": (3, lambda e: msgspec.structs.replace(e, out=[*e.out, *e.out]), "1 asks and 2 outcomes"),
    "another moment": (3, lambda e: msgspec.structs.replace(e, at=e.at + 1), "its moment is"),
}  # fmt: skip


@pytest.mark.parametrize("what", LIES)
def test_a_lie_with_a_right_chain_is_named_by_its_message(what: str, file: Path) -> None:
    seq, change, why = LIES[what]
    books = day()
    kinds = [type(out) for entry in books.entries for out in entry.out]
    assert kinds[1:6] == [Held, Settled, Held, Exhausted, Observed]
    proved(recorded(books), file)
    failed = bad(forged(books, seq, change), file)
    assert failed.seq == seq, failed.why
    assert why in failed.why


@pytest.mark.parametrize("what", FALSE_SEALS)
def test_m19_a_false_seal_with_a_right_chain_is_named_by_its_message(what: str, file: Path) -> None:
    change, why = FALSE_SEALS[what]
    assert proved(recorded(night()), file)["seals"] == 1
    failed = bad(forged(night(), 5, change), file)
    assert (failed.seq, why in failed.why) == (5, True), failed.why


def test_a_seal_where_no_day_ends_is_named(file: Path) -> None:
    [seal] = night().entries[4].sealed
    failed = bad(forged(night(), 3, lambda entry: msgspec.structs.replace(entry, sealed=[seal])), file)
    assert (failed.seq, "not over" in failed.why) == (3, True), failed.why


def test_a_seal_that_was_changed_and_its_chain_not_is_named_by_its_told(file: Path) -> None:
    stream = recorded(night())
    assert bad(edit(8, b'"settled":250000000', b'"settled":150000000')(stream), file).seq == 8


def test_days_of_a_zone_that_is_not_known_here_end_where_the_seals_say(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_zone(name: str) -> None:
        raise verify.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(verify, "ZoneInfo", no_zone)
    found = proved(recorded(night()), file)
    assert (found["seals"], found["unknown_zones"]) == (1, ["UTC"])
    assert bad(forged(night(), 5, FALSE_SEALS["less was settled"][0]), file).seq == 5
    assert proved(forged(night(), 5, FALSE_SEALS["another day"][0]), file)["seals"] == 1


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Apia", "Australia/Lord_Howe", "America/Santiago"])
def test_its_calendar_is_the_wallets(zone: str) -> None:
    calendar = verify.Calendar(zone)
    at = moment("2011-12-20 12:00")
    while at < moment("2012-11-30 12:00"):
        period = period_at(at, per="day", zone=zone)
        assert (calendar.day_of(at), calendar.end_of(calendar.day_of(at))) == (period.name, period.end)
        at += 7 * 3_600 * 10**9


def test_a_hold_past_the_limit_is_named_even_where_its_figures_agree(file: Path) -> None:
    books = Books().at("09:00")
    books.hold("a", "0.90")
    books.hold("b", "0.20")
    [held] = books.entries[1].out
    assert isinstance(held, Held)
    over = {"jev": msgspec.structs.replace(held.budgets["jev"], remaining=-10 * CENT)}
    lie = Held("b", 0, {"usd": 20 * CENT}, over, held.at, held.expires_at)
    failed = bad(forged(books, 3, lambda entry: msgspec.structs.replace(entry, out=[lie])), file)
    assert (failed.seq, "more of jev than its limit" in failed.why) == (3, True)


def test_a_hold_that_ends_twice_is_named(file: Path) -> None:
    books = Books().at("09:00")
    books.hold("a", "0.40")
    books.settle("a", "0.25")
    books.send(Settle("a", amounts("0.25")))
    [settled] = books.entries[2].out
    failed = bad(forged(books, 4, lambda entry: msgspec.structs.replace(entry, out=[settled])), file)
    assert (failed.seq, "not open" in failed.why) == (4, True)


def test_words_that_make_no_sense_are_named_and_no_error_of_ours(file: Path) -> None:
    failed = bad(forged(day(), 2, outcome(option=7)), file)
    assert (failed.seq, "cannot be understood" in failed.why) == (2, True)


# --- the command ------------------------------------------------------------------------------------------------------


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As an auditor runs it: alone, seeing nothing that is installed and nothing of ours."""
    command = [sys.executable, "-I", "-S", str(VERIFY), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")


def test_it_runs_alone_and_says_what_it_proved(books: Books, file: Path) -> None:
    stream = recorded(books)
    write_raw(stream, file)
    ended = run(str(file), "--receipt", f"6:{chain_of(stream[5])}")
    assert ended.returncode == 0, ended.stderr
    assert "jev 2026-11-30: settled 0.25, held 0.4, extra 0 usd" in ended.stdout
    assert "1 receipts stand on it." in ended.stdout
    found = json.loads(run(str(file), "--json").stdout)
    assert (found["ok"], found["messages"], found["asks"], found["told"]) == (True, 6, 4, 6)


def test_it_ends_with_1_and_names_the_first_bad_sequence(books: Books, file: Path) -> None:
    change, seq, since = TAMPERINGS["edit: an amount that was asked"]
    write_raw(change(recorded(books)), file)
    ended = run(str(file))
    assert (ended.returncode, ended.stdout.startswith("sequence 6: the chain does not follow")) == (1, True)
    ended = run(str(file), "--json")
    said = json.loads(ended.stdout)
    assert (ended.returncode, said["ok"], said["seq"], said["since"]) == (1, False, seq, since)


NO_RECORDS = [
    "no json",
    "[]",
    "[" * 100_000,
    '{"seq":1}',
    '{"seq":1,"ts":1,"kind":"ask"}',
    '{"seq":true,"ts":1,"kind":"ask","data":""}',
    '{"seq":1,"ts":1,"kind":"ask","base64":"%"}',
    '{"seq":1,"ts":1,"kind":"other","data":""}',
]


@pytest.mark.parametrize("text", NO_RECORDS)
def test_a_file_that_is_no_record_is_no_error_of_ours(text: str, file: Path) -> None:
    file.write_text(text + "\n")
    ended = run(str(file), "--json")
    assert (ended.returncode, json.loads(ended.stdout)["seq"], ended.stderr) == (1, 1, "")


def test_wrong_usage_ends_with_2(file: Path) -> None:
    assert run(str(file)).returncode == 2
    file.write_text("")
    assert run(str(file), "--receipt", "6:nonsense").returncode == 2
    assert run(str(file), "--receipt", f"6:{'0' * 64}", "--receipt", f"6:{'1' * 64}").returncode == 2


def test_it_imports_the_standard_library_alone() -> None:
    found = set()
    for node in ast.walk(ast.parse(VERIFY.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add((node.module or "").partition(".")[0])
    assert found <= sys.stdlib_module_names
    assert not found & {"socket", "http", "urllib", "ssl", "asyncio", "subprocess", "importlib", "ctypes"}
