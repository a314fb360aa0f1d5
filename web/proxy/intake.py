"""What goes into a call: its texts, and an upper bound of all that is no text. Knows the shapes of every provider.

It reads messages, inputs and tools of OpenAI, Anthropic and Workers AI alike. What it does not know is counted whole,
as text; the data of images, sound and files is not text and has the constants of `web.proxy.tokens`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from web.proxy import tokens

DEPTH_MAX = 32
"""Of contents in contents: deeper, everything counts as text."""

_IMAGES = frozenset({"image_url", "input_image", "image"})
_FILES = frozenset({"file", "input_file", "document", "container_upload"})
_SOUNDS = frozenset({"input_audio", "audio"})
_PLAIN_TEXTS = frozenset({"text", "input_text", "output_text"})
_as_json = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(slots=True)
class Intake:
    """Fill it with `messages`, `input`, `tools` and `text`; then `most_tokens` is the bound."""

    model: str
    texts: list[str] = field(default_factory=list)
    more_tokens: int = tokens.CALL_TOKENS_MAX
    """Beside the texts: frames, images, sound and files."""
    images: int = 0
    files: int = 0
    audio: bool = False

    def most_tokens(self) -> int:
        """The most tokens of all that was put in."""
        return tokens.bound(self.texts, self.model) + self.more_tokens

    def text(self, text: str) -> None:
        """A text that stands on its own: a prompt, a system prompt."""
        self.texts.append(text)
        self.more_tokens += tokens.PART_TOKENS_MAX

    def input(self, value: object) -> None:
        """`input` or `prompt`: a text, several, tokens already, or messages. A number is one token."""
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, list):
                waiting += reversed(item)
            elif isinstance(item, str):
                self.text(item)
            elif isinstance(item, int):
                self.more_tokens += 1
            else:
                self._message(item)

    def messages(self, value: object) -> None:
        """`messages`, or `system` where that is a list of parts."""
        for message in value if isinstance(value, list) else [value]:
            self._message(message)

    def tools(self, value: object) -> None:
        """`tools` or `functions`: what the model may call."""
        offered = value if isinstance(value, list) else [value]
        if offered:
            self.more_tokens += tokens.TOOLS_TOKENS_MAX
        for tool in offered:
            described = isinstance(tool, dict) and bool({"function", "input_schema", "parameters"} & tool.keys())
            self.more_tokens += tokens.TOOL_TOKENS_MAX if described else tokens.PROVIDER_TOOL_TOKENS_MAX
            self.json(tool)

    def json(self, value: object) -> None:
        """Anything that goes in as JSON or as text made from it: every name and value in it, as JSON writes it."""
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, dict):
                self.more_tokens += tokens.MEMBER_TOKENS_MAX * (1 + len(item))
                waiting += [*item, *item.values()]
            elif isinstance(item, list | tuple):
                self.more_tokens += tokens.MEMBER_TOKENS_MAX * (1 + len(item))
                waiting += item
            else:
                self._escaped(item if isinstance(item, str) else str(item))

    def _escaped(self, text: str) -> None:
        self.text(_as_json(text)[1:-1])

    def _message(self, message: object) -> None:
        self.more_tokens += tokens.MESSAGE_TOKENS_MAX
        if isinstance(message, str):
            self.text(message)
        elif isinstance(message, dict) and "content" in message and "type" not in message:
            for name, member in message.items():
                if name == "content":
                    self._content(member)
                elif member is not None:
                    self.json(member)
        else:
            self._content(message)

    def _content(self, content: object, depth: int = 0) -> None:
        if isinstance(content, str):
            self.text(content)
        elif depth > DEPTH_MAX:
            self.json(content)
        elif isinstance(content, list | tuple):
            for part in content:
                self._content(part, depth + 1)
        elif isinstance(content, dict):
            self._part(content, depth)
        elif content is not None:
            self.json(content)

    def _part(self, part: Mapping[str, object], depth: int) -> None:
        kind, text = part.get("type"), part.get("text")
        kind = kind if isinstance(kind, str) else ""
        if kind in _PLAIN_TEXTS and isinstance(text, str):
            self.text(text)
        elif kind in _IMAGES:
            self.image()
        elif kind in _SOUNDS:
            self._sound(part)
        elif kind in _FILES:
            self._file(part, depth)
        else:
            self._unknown(part, depth)

    def _unknown(self, part: Mapping[str, object], depth: int) -> None:
        """A part such as `tool_use` or `tool_result`: its members, with images and files where they are."""
        for name, member in part.items():
            self.more_tokens += tokens.MEMBER_TOKENS_MAX
            self.text(name)
            if name in ("content", "output"):
                self._content(member, depth + 1)
            else:
                self.json(member)

    def image(self) -> None:
        """One image, wherever it stands and however large it is."""
        self.images += 1
        self.more_tokens += tokens.image_tokens(self.model)

    def _sound(self, part: Mapping[str, object]) -> None:
        self.audio = True
        self.more_tokens += tokens.audio_tokens(_characters(part))

    def _file(self, part: Mapping[str, object], depth: int) -> None:
        source = part.get("source")
        if isinstance(source, dict) and source.get("type") in ("text", "content"):
            self._unknown({name: member for name, member in part.items() if name != "source"}, depth)
            self._content(source.get("content") if source["type"] == "content" else source.get("data"), depth + 1)
            return
        self.files += 1
        self.more_tokens += tokens.FILE_TOKENS_MAX


def _characters(value: object) -> int:
    """How many characters all the texts in it have."""
    waiting, found = [value], 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found += len(item)
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
    return found
