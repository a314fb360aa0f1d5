"""The price book: which model costs what. Named by the SHA-256 of its canonical JSON, which every hold carries.

The book that comes with us is generated from the package genai-prices; an operator's own prices go before it. Reading a
book's file is the only I/O here. A model that is not in the book has no price: it is never free by accident.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from engine.errors import Misconfigured
from engine.prices.ids import MODEL_CHARS_MAX, plain, without_version
from engine.prices.own import OwnPrices, read_own
from engine.prices.price import Price, Rates

FORMAT = 1
BOOK_BYTES_MAX = 16 * 1024 * 1024
SHIPPED = "shipped.json.gz"
_FOUND_MAX = 4096  # ids remembered, known or not: strangers choose them

GUARDED = ("openai", "anthropic", "cloudflare", "openrouter")
"""The providers that are asked in turn where a model comes without one."""


class ModelPrices(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model as it stands in a book; `Price` has its provider and name beside it."""

    usd: Rates
    neuron_pico_usd: int | None = None
    variants: dict[str, Rates] = {}


class Provider(msgspec.Struct, frozen=True, omit_defaults=True):
    """One provider's models. `ids`: other ids of them. `prefixes`: what ids of fine-tuned models begin with."""

    models: dict[str, ModelPrices]
    ids: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    fallbacks: list[str] = []
    """Providers whose models it also serves, at their prices."""


class Contents(msgspec.Struct, frozen=True, omit_defaults=True):
    """A book as it lies in a file. Providers are read when one of them is asked for."""

    v: int
    source: str
    """The package the prices are from, and its version."""
    as_of: str
    """The day whose prices these are."""
    providers: dict[str, msgspec.Raw]
    own: dict[str, Price] = {}
    """The operator's own prices; a key is `provider/model`, or `*/model` for any provider."""
    ceiling: Price | None = None


_contents = msgspec.json.Decoder(Contents)
_provider = msgspec.json.Decoder(Provider)
_canonical = msgspec.json.Encoder(order="sorted")


class PriceBook:
    """Prices of models. The same canonical JSON has the same `digest` and answers the same for ever."""

    def __init__(self, raw: bytes) -> None:
        """`raw`: the canonical JSON of a book. Raises `Misconfigured` if it is none."""
        self.raw = raw
        self.digest = hashlib.sha256(raw).hexdigest()
        self.contents = _read(raw)
        self._providers: dict[str, Provider | None] = {}
        self._found: dict[tuple[str, str], Price | None] = {}

    def find(self, provider: str, model: str) -> Price | None:
        """The price of a model, by any of its ids; without a provider (""), the first of `GUARDED` that has it.

        None: it has no price here and must not be called. With a ceiling price configured that stands for it instead.
        """
        if max(len(provider), len(model)) > MODEL_CHARS_MAX:
            return None
        key = (provider, model)
        if key not in self._found:
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            self._found[key] = self._look_up(plain(provider), plain(model))
        return self._found[key]

    def with_own(self, own: OwnPrices) -> PriceBook:
        """This book with an operator's own prices before all others."""
        contents = msgspec.structs.replace(self.contents, own=own.prices, ceiling=own.ceiling)
        return PriceBook(canonical(contents))

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers that the book knows, but for the operator's own."""
        return tuple(self.contents.providers)

    def prices(self, provider: str) -> dict[str, Price]:
        """Every model of a provider, by its own id."""
        known = self._provider(provider)
        return (
            {} if known is None else {model: _price(provider, model, prices) for model, prices in known.models.items()}
        )

    def _look_up(self, provider: str, model: str) -> Price | None:
        if not model:
            return None
        if (own := self._own(provider, model)) is not None:
            return own
        for known in (provider,) if provider else GUARDED:
            found = self._shipped(known, model)
            if found is not None:
                return self._own(found.provider, plain(found.model)) or found
        return self._own(provider, without_version(model)) or self._ceiling(provider, model)

    def _own(self, provider: str, model: str) -> Price | None:
        own = self.contents.own
        if not own:
            return None
        for known in (provider,) if provider else GUARDED:
            if (found := own.get(f"{known}/{model}")) is not None:
                return found
        anywhere = own.get(f"*/{model}")
        return None if anywhere is None else msgspec.structs.replace(anywhere, provider=provider)

    def _shipped(self, provider: str, model: str, *, fall_back: bool = True) -> Price | None:
        known = self._provider(provider)
        if known is None:
            return None
        for spelled in (model, without_version(model)):
            name = known.ids.get(spelled, spelled)
            if name in known.models:
                return _price(provider, name, known.models[name])
        for prefix, name in known.prefixes.items():
            if model.startswith(prefix):
                return _price(provider, name, known.models[name])
        if fall_back:
            others = (self._shipped(other, model, fall_back=False) for other in known.fallbacks)
            found = next((found for found in others if found is not None), None)
            if found is not None:  # its maker's other service tiers are not this provider's
                return msgspec.structs.replace(found, provider=provider, variants={})
        return None

    def _ceiling(self, provider: str, model: str) -> Price | None:
        ceiling = self.contents.ceiling
        return None if ceiling is None else msgspec.structs.replace(ceiling, provider=provider, model=model)

    def _provider(self, name: str) -> Provider | None:
        if name not in self._providers:
            raw = self.contents.providers.get(name)
            if raw is None:
                return None  # not remembered: a caller may have made the name up
            try:
                self._providers[name] = _provider.decode(raw)
            except msgspec.ValidationError as error:
                raise Misconfigured(f"the price book is broken at providers.{name}: {error}") from None
        return self._providers[name]


def canonical(contents: Contents) -> bytes:
    """The one way a book is written: keys in order, no blanks. `providers` must have been written so before."""
    return _canonical.encode(contents)


def load_book(overrides: Mapping[str, object] = {}, *, book: PriceBook | None = None) -> PriceBook:
    """The shipped book, or `book`, with the `[prices]` table of a `purse.toml` before it.

    Raises `Misconfigured` naming the place in the table and what is allowed there.
    """
    book = shipped_book() if book is None else book
    return book.with_own(read_own(overrides)) if overrides else book


@cache
def shipped_book() -> PriceBook:
    """The book in the wheel. Read once a process, when first asked for."""
    return PriceBook(gzip.decompress(files("engine.prices").joinpath(SHIPPED).read_bytes()))


def read_book(path: Path) -> PriceBook:
    """The book in a file, gzipped or not. Raises `Misconfigured`."""
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise Misconfigured(f"{path}: cannot be read as a price book: {type(error).__name__}") from error
    try:
        return PriceBook(raw)
    except Misconfigured as error:
        raise Misconfigured(f"{path}: {error}") from None


def _read(raw: bytes) -> Contents:
    if len(raw) > BOOK_BYTES_MAX:
        raise Misconfigured(f"a price book has at most {BOOK_BYTES_MAX} bytes")
    try:
        contents = _contents.decode(raw)
    except msgspec.MsgspecError as error:
        raise Misconfigured(f"this is no price book: {error}") from None
    if contents.v != FORMAT:
        raise Misconfigured(f"this price book is of format {contents.v}; this program reads {FORMAT}")
    return contents


def _price(provider: str, model: str, prices: ModelPrices) -> Price:
    return Price(
        provider=provider,
        model=model,
        usd=prices.usd,
        neuron_pico_usd=prices.neuron_pico_usd,
        variants=prices.variants,
    )
