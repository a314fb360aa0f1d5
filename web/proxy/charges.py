"""What each end of a call costs.

    the provider was not reached, or says that it failed before any token   nothing
    it reports what was used                                                exactly that, above the grant too
    a stream broke, stalled, was cut, or its client left                    what was seen x 1.08, at most the grant
    the same where tokens may be billed that no stream shows                the grant
    anything else that reports nothing                                      the grant

All but the first two are estimates, which one exact settle may still correct.
"""

from __future__ import annotations

import msgspec

from engine.core.messages import Amounts
from engine.prices import Price, PriceBook, Usage
from web.proxy.dialect import Call, Meter, Reading
from web.proxy.hold import OpenHold
from web.proxy.options import FACTOR_PCT, Priced


class Charges:
    """Says to one hold how it ends."""

    def __init__(self, hold: OpenHold, priced: Priced, call: Call, book: PriceBook) -> None:
        self._hold, self._priced, self._call, self._book = hold, priced, call, book
        self._granted = hold.held.amounts

    def reported(self, reading: Reading) -> None:
        """The call ended well. Where it reports nothing it costs the grant; what cannot be priced, no less."""
        if reading.usage is None:
            self._hold.guess(self._granted)
            return
        price = self._answered(reading.model) or self._priced.price
        amounts = self._priced.cost(reading.usage, price=price)
        if reading.exact and price.offers(reading.usage.service):
            self._hold.exact(amounts)
        else:
            self._hold.guess({unit: max(amount, self._granted.get(unit, 0)) for unit, amount in amounts.items()})

    def _answered(self, model: str) -> Price | None:
        """The price of the model that answered, where it is known; a ceiling is no model's own price."""
        found = self._book.find(self._priced.price.provider, model) if model else None
        ceiling = self._book.contents.ceiling
        if found is None or ceiling is None:
            return found
        return None if found == msgspec.structs.replace(ceiling, provider=found.provider, model=found.model) else found

    def finished(self, meter: Meter) -> None:
        """The stream ended well."""
        self.reported(meter.reading)

    def aborted(self, meter: Meter) -> None:
        """The stream ended before the provider could say what was used."""
        if meter.reading.usage is not None:
            self.reported(meter.reading)
        elif self._call.hidden:
            self._hold.guess(self._granted)
        else:
            self._hold.guess(self._with_factor(self.seen(meter)))

    def broken(self, meter: Meter) -> None:
        """The provider's stream failed. Before any token, nothing was made that anybody could bill.

        Where it broke without a word, and had said before what went in, that may be billed.
        """
        nothing = meter.reading.usage is None and not meter.output.most
        if nothing and (meter.failed or not (self._call.hidden or meter.partial)):
            self._hold.release()
        else:
            self.aborted(meter)

    def seen(self, meter: Meter) -> Amounts:
        """What was seen costs this."""
        return self._priced.cost(self.usage_seen(meter))

    def usage_seen(self, meter: Meter) -> Usage:
        """An upper bound of what the part that was seen used."""
        if meter.partial is None:
            return Usage(input_tokens=self._priced.input_tokens, output_tokens=meter.output.most)
        most = max(meter.partial.output_tokens, meter.output.most)
        return msgspec.structs.replace(meter.partial, output_tokens=most)

    def used_up(self, meter: Meter) -> bool:
        """Whether the stream must be cut: its grant is seen, or its provider does not obey the cap."""
        if self._call.capped:
            return meter.output.least > self._priced.way.output_tokens * self._call.choices
        return any(amount * FACTOR_PCT >= self._granted[unit] * 100 for unit, amount in self.seen(meter).items())

    def _with_factor(self, amounts: Amounts) -> Amounts:
        counted = {unit: -(-amount * FACTOR_PCT // 100) for unit, amount in amounts.items()}
        return {unit: min(amount, self._granted.get(unit, amount)) for unit, amount in counted.items()}
