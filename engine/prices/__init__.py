"""What calls cost: a price book, and the arithmetic from counted tokens to amounts. No clock, no network."""

from __future__ import annotations

from engine.prices.book import PriceBook, load_book
from engine.prices.cost import affordable_output_tokens, cost, worst
from engine.prices.price import Price
from engine.prices.usage import Usage

__all__ = ["Usage", "Price", "PriceBook", "load_book", "cost", "worst", "affordable_output_tokens"]
