"""HTML from templates: what is filled in is escaped, unless it is HTML already. It knows no page and no request."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files
from string import Template


class Html(str):
    """Text that is HTML already. Everything else that goes into a template is escaped."""

    __slots__ = ()


@cache
def _template(name: str) -> Template:
    return Template(files("web").joinpath("templates", name).read_text(encoding="utf-8"))


def fill(template: str, /, **values: str | int) -> Html:
    """The template of this name with its `$name`s filled in."""
    return Html(_template(template).substitute({key: safe(value) for key, value in values.items()}))


def safe(value: str | int) -> Html:
    return value if isinstance(value, Html) else Html(escape(str(value)))


def joined(parts: Iterable[str | int]) -> Html:
    """One after another, each escaped unless it is HTML."""
    return Html("".join(map(safe, parts)))


def element(tag: str, *inside: str | int, **attributes: str | int | bool | None) -> Html:
    """`<tag name="value">inside</tag>`. False and None leave an attribute out, True says its name alone.

    `_` in a name is `-` (`aria_label`); one at its end is dropped (`class_`).
    """
    said = "".join(_attribute(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    return Html(f"<{tag}{said}>{joined(inside)}</{tag}>")


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{safe(value)}"'


def hidden_field(name: str, value: str) -> Html:
    """What a form carries and nobody sees."""
    return Html(f'<input type="hidden" name="{safe(name)}" value="{safe(value)}">')


def hidden(hide: bool) -> Html:
    return Html(" hidden" if hide else "")
