"""Money is whole numbers: what people write comes in exactly or not at all, and goes out as it came."""

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.amounts import SCALES, AmountError, format_amount, parse, round_up
from engine.core.limits import AMOUNT_MAX


def usd(written: str | int | Decimal) -> int:
    return parse(written, unit="usd", scale=9)


def refusal(written: object, *, scale: int = 9, signed: bool = False) -> str:
    with pytest.raises(AmountError) as refused:
        parse(written, unit="usd", scale=scale, signed=signed)  # type: ignore[arg-type]
    return str(refused.value)


# --- what is taken ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "unit", "amount"),
    [
        ("1.00", "usd", 1_000_000_000), ("0.000000001", "usd", 1), ("0.0123", "usd", 12_300_000), ("0", "usd", 0),
        ("1", "usd", 1_000_000_000), ("007", "usd", 7_000_000_000), ("0.1000000000000000000000", "usd", 100_000_000),
        ("10000", "neurons", 10_000_000_000), ("3.125", "neurons", 3_125_000), ("80", "jpy", 80_000_000),
        ("4096", "tokens", 4096), ("4096.0", "tokens", 4096), (12, "requests", 12), (1, "usd", 1_000_000_000),
        (Decimal("0.25"), "usd", 250_000_000), (Decimal("1E-9"), "usd", 1), (Decimal("1.5E3"), "tokens", 1500),
        ("9223372036.854775807", "usd", AMOUNT_MAX), ("9223372036854775807", "tokens", AMOUNT_MAX),
    ],
)  # fmt: skip
def test_an_amount_is_the_whole_number_of_smallest_parts(written: str | int | Decimal, unit: str, amount: int) -> None:
    assert parse(written, unit=unit, scale=SCALES[unit]) == amount


def test_a_token_at_15_cents_per_million_is_150() -> None:
    assert round_up(usd("0.15"), 1_000_000) == 150


def test_only_an_adjustment_may_be_negative() -> None:
    assert parse("-0.5", unit="usd", scale=9, signed=True) == -500_000_000
    assert parse("-0", unit="usd", scale=9, signed=True) == 0
    assert refusal("-0.5") == "usd must not be negative"


# --- what is refused --------------------------------------------------------------------------------------------------


def test_e15_a_negative_amount_is_refused() -> None:
    assert refusal("-1") == refusal(-1) == refusal(Decimal("-0.000000001")) == "usd must not be negative"


def test_l18_a_negative_cost_mints_no_credit() -> None:
    assert refusal("-0.01") == "usd must not be negative"


@pytest.mark.parametrize("written", ["NaN", "nan", "sNaN", "Infinity", "-Infinity", "inf"])
def test_l13_what_is_not_a_number_is_refused(written: str) -> None:
    expected = f'expected a decimal string of usd like "0.25", got "{written}"'
    assert refusal(written) == expected
    assert refusal(Decimal(written)).startswith("expected a decimal string of usd")


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "1 ", " 1", "1\n", "+1", "--1", "1.", ".5", "1e3", "1E-3", "0x10", "1_000", "1,5", "1,000.00", "$1",
        "1.2.3", "\u0661", "\uff11", "one", "1\x00",
    ],
)  # fmt: skip
def test_only_plain_digits_with_a_point_are_an_amount(written: str) -> None:
    assert refusal(written, signed=True).startswith('expected a decimal string of usd like "0.25"')


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (0.1, "a float"), (True, "true or false"), (None, "null"), (["1"], "a list"), ({"usd": "1"}, "an object"),
        (b"1", "bytes"),
    ],
)  # fmt: skip
def test_no_float_and_nothing_else_that_is_not_written_out_comes_in(written: object, kind: str) -> None:
    assert refusal(written) == f"expected a decimal string of usd, got {kind}"


def test_more_digits_than_the_unit_has_are_refused_not_rounded() -> None:
    assert refusal("0.0000000001") == "usd has at most 9 digits after the point, got 10"
    assert refusal("1.5", scale=0) == "usd has at most 0 digits after the point, got 1"
    assert refusal(Decimal("0.1000000000000000055511151231257827")).startswith("usd has at most 9 digits")


@pytest.mark.parametrize(
    "written", ["9223372036.854775808", "9223372037", "9" * 30, 10**10, pytest.param(10**5000, id="5001 digits")]
)
def test_more_than_64_bits_hold_is_refused(written: str | int) -> None:
    assert refusal(written) == "usd must be at most 9223372036.854775807"


def test_the_largest_amount_is_the_same_below_zero() -> None:
    assert parse("-9223372036.854775807", unit="usd", scale=9, signed=True) == -AMOUNT_MAX
    assert refusal("-9223372036.854775808", signed=True) == "usd must be at most 9223372036.854775807"


@pytest.mark.parametrize("written", ["1" * 100_000, "x" * 100_000, Decimal("1E+999999"), Decimal("1E-999999")])
def test_a_long_value_is_refused_and_not_repeated(written: str | Decimal) -> None:
    assert len(refusal(written)) < 120


def test_the_example_in_the_error_is_one_that_would_be_taken() -> None:
    assert refusal("many", scale=0) == 'expected a decimal string of usd like "25", got "many"'


# --- exactness --------------------------------------------------------------------------------------------------------


def test_i1_a_spend_equal_to_the_limit_is_not_over_it() -> None:
    parts = [usd("0.000123"), usd("0.000492"), usd("0.001")]
    assert 0.000123 + 0.000492 + 0.001 != 0.001615  # what floats would have said
    assert sum(parts) == usd("0.001615")


def test_i2_a_sum_of_cents_is_written_as_people_would() -> None:
    assert sum([0.1] * 6) + 0.062 != 0.662
    assert format_amount(6 * usd("0.1") + usd("0.062"), scale=9) == "0.662"


def test_i3_a_million_small_charges_do_not_drift() -> None:
    balance, charge = usd("1000"), usd("0.001")
    for _ in range(1_000_000):
        balance -= charge
    assert balance == 0


def test_i5_fractions_are_kept() -> None:
    assert usd("10") - usd("0.4") - usd("0.4") == usd("9.2")


def test_l14_three_tenths_fit_exactly_into_a_limit_of_three_tenths() -> None:
    limit, used = usd("0.3"), 0
    for _ in range(3):
        assert used + usd("0.1") <= limit
        used += usd("0.1")
    assert used == limit
    assert used + 1 > limit


def test_a_json_number_read_exactly_is_the_amount_that_was_written() -> None:
    read = json.loads('{"usd": 0.1, "tokens": 3}', parse_float=Decimal)
    assert (usd(read["usd"]), parse(read["tokens"], unit="tokens", scale=0)) == (100_000_000, 3)


# --- what goes out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "scale", "written"),
    [
        (12_300_000, 9, "0.0123"), (1_000_000_000, 9, "1"), (1, 9, "0.000000001"), (0, 9, "0"), (0, 0, "0"),
        (4096, 0, "4096"), (-500_000_000, 9, "-0.5"), (-4096, 0, "-4096"), (1_500_000, 6, "1.5"), (100, 0, "100"),
        (AMOUNT_MAX, 9, "9223372036.854775807"), (AMOUNT_MAX, 12, "9223372.036854775807"),
    ],
)  # fmt: skip
def test_the_shortest_exact_string_goes_out(amount: int, scale: int, written: str) -> None:
    assert format_amount(amount, scale=scale) == written


@settings(deadline=None)
@given(amount=st.integers(-AMOUNT_MAX, AMOUNT_MAX), scale=st.integers(0, 12))
def test_what_goes_out_comes_back_the_same(amount: int, scale: int) -> None:
    written = format_amount(amount, scale=scale)
    assert parse(written, unit="usd", scale=scale, signed=True) == amount
    assert Decimal(written) == Decimal(amount).scaleb(-scale)


@settings(deadline=None)
@given(written=st.text(max_size=50) | st.from_regex(r"-?\d{0,25}\.?\d{0,25}") | st.decimals() | st.integers())
def test_whatever_comes_in_is_exact_or_an_amount_error(written: str | int | Decimal) -> None:
    try:
        amount = parse(written, unit="usd", scale=9, signed=True)
    except AmountError:
        return
    assert Decimal(amount) == Decimal(written).scaleb(9)
    assert abs(amount) <= AMOUNT_MAX


# --- the one rounding rule --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded"),
    [(0, 7, 0), (1, 7, 1), (6, 7, 1), (7, 7, 1), (8, 7, 2), (10**30 + 1, 10, 10**29 + 1)],
)  # fmt: skip
def test_a_cost_between_two_smallest_parts_costs_the_larger_one(numerator: int, denominator: int, rounded: int) -> None:
    assert round_up(numerator, denominator) == rounded


@settings(deadline=None)
@given(numerator=st.integers(0, 10**30), denominator=st.integers(1, 10**18))
def test_rounding_up_gives_the_least_whole_number_that_covers_the_cost(numerator: int, denominator: int) -> None:
    assert (round_up(numerator, denominator) - 1) * denominator < numerator
    assert round_up(numerator, denominator) * denominator >= numerator
