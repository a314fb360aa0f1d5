"""Upper bounds of the tokens that go into a call, before it is made. Never a guess: a hold must cover what is billed.

Text is counted by the model's own tokenizer where that is public (OpenAI's) and this process has loaded it, and by its
bytes otherwise: no tokenizer in use makes more tokens than bytes. What is not text has a stated constant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache

_Truncate = Callable[[str, int, str], tuple[str, int]]

MESSAGE_TOKENS_MAX = 12
"""Around one message: role, name, frame. OpenAI: 4; llama 3: 5; the frame of a tool call or its result: up to 10."""

CALL_TOKENS_MAX = 128
"""Around a whole call: the start of the answer (OpenAI: 3), the prompt that a template brings (gpt-oss: about 100)."""

PART_TOKENS_MAX = 4
"""More than the sum, where two texts become one: the tokens at the seam may fall otherwise."""

MEMBER_TOKENS_MAX = 6
"""Around one member of an object, or element of a list, that goes in as JSON: quotes, colon, comma, bracket, blanks."""

TOOLS_TOKENS_MAX = 1024
"""For offering tools at all: the prompt that explains them (Anthropic: 264 to 675 by model)."""

TOOL_TOKENS_MAX = 64
"""Around one tool that is described by a JSON schema (OpenAI: 19 to 22), beside the text of its description."""

PROVIDER_TOOL_TOKENS_MAX = 2048
"""For one tool that the provider itself describes (Anthropic: bash 245, editor 700, computer 735 and 499)."""

IMAGE_TOKENS_MAX = 50_000
"""One image of any size, for a model that is not known better. The most in use: 48,169 (gpt-4o-mini, eight tiles)."""

FILE_TOKENS_MAX = 1_100_000
"""One file: its pages are not known before. No model that the proxies speak to takes more in one call."""

AUDIO_BYTES_PER_TOKEN = 10
"""Sound, as decoded from base64. Models hear 10 tokens a second; below 100 bytes a second nothing is speech."""

TEXTS_EXACT_MAX = 10_000
"""More texts than this in one call are counted by their bytes: two million of one letter took the tokenizer 3 s."""

MODELS_REMEMBERED_MAX = 256

_COUNT_ALL = 1 << 30
_PIECE_CHARS = 1 << 16  # 8 MB of blanks in one piece took the tokenizer 3.4 s, in pieces 0.17 s
_CHARS_WITH_LONGER_FORM = range(0xA0, 0x30000)

_ENCODINGS = (
    ("o200k_base", re.compile(r"(?:chatgpt|gpt)-4o|gpt-4\.[15]|gpt-5|gpt-oss|o[134](?:$|-)")),
    ("cl100k_base", re.compile(r"gpt-4(?:$|-)|gpt-3\.5|text-embedding-(?:3-|ada-002)")),
)
_IMAGES = (
    (48_169, re.compile(r"gpt-4o-mini")),  # 2833 and 5667 for each of 8 tiles
    (3_779, re.compile(r"gpt-4\.1-(?:mini|nano)|o4-mini")),  # 1536 patches, times 1.62, 2.46 or 1.72
    # 85 and 170 for each tile:
    (1_445, re.compile(r"(?:chatgpt|gpt)-4o|gpt-4\.[15]|gpt-4-turbo|gpt-5(?:$|-\d{4})|o[13](?:$|-)")),
    (5_000, re.compile(r"claude-")),  # 4784 at the highest resolution, 1600 before
    (6_500, re.compile(r"llama-3\.2-(?:11|90)b-vision")),  # 4 tiles of 1601
)
_PREFIX = re.compile(r"^(?:ft:|@cf/)?(?:[a-z0-9~-]+/)?")


_loaded: dict[str, _Truncate] = {}  # a fact of the process, made once by `load`


def load() -> bool:
    """Load the public tokenizers; False where their wheel is not installed. Before a process serves, or not at all.

    It takes a second and 100 MB, and nothing else runs meanwhile. Two counts of one text must not differ, so what was
    not loaded at the start is counted by its bytes to the end.
    """
    try:
        import toktok
    except ImportError:
        return False
    for encoding, _ in _ENCODINGS:
        toktok.truncate("", _COUNT_ALL, encoding)
        _loaded[encoding] = toktok.truncate
    return True


def bound(texts: Sequence[str], model: str) -> int:
    """The most tokens that these texts can be for a model, each on its own. Exact where its tokenizer is loaded."""
    encoding = encoding_of(model)
    if encoding is None or len(texts) > TEXTS_EXACT_MAX:
        return sum(map(bytes_bound, texts))
    return sum(_exact(_loaded[encoding], text, encoding) for text in texts)


def bytes_bound(text: str) -> int:
    """The bytes of a text in UTF-8, or in the compatibility form (NFKC) that some tokenizers bring it into first.

    Putting characters together only makes that form shorter, so the sum over single characters bounds it.
    """
    if text.isascii():
        return len(text)
    longer, pattern = _longer_forms()
    return len(text.encode("utf-8", "surrogatepass")) + sum(map(longer.__getitem__, pattern.findall(text)))


def encoding_of(model: str) -> str | None:
    """The tokenizer that counts the texts of a model exactly; None where it is not public, or not loaded here."""
    found = _public(model)
    return found if found in _loaded else None


@lru_cache(MODELS_REMEMBERED_MAX)  # asked for every piece of a stream
def _public(model: str) -> str | None:
    name = _bare(model)
    return next((encoding for encoding, known in _ENCODINGS if known.match(name)), None)


def image_tokens(model: str) -> int:
    """The most tokens that one image of any size can be for a model."""
    name = _bare(model)
    return next((most for most, known in _IMAGES if known.match(name)), IMAGE_TOKENS_MAX)


def audio_tokens(base64_chars: int) -> int:
    """The most tokens that sound can be, by the length of its base64."""
    return base64_chars * 3 // 4 // AUDIO_BYTES_PER_TOKEN + 1


def _bare(model: str) -> str:
    """Without who serves it: `openai/gpt-4o`, `@cf/openai/gpt-oss-20b` and `ft:gpt-4o-mini:acme` are what they name."""
    return _PREFIX.sub("", model.strip().lower())


def _exact(count: _Truncate, text: str, encoding: str) -> int:
    try:
        if len(text) <= _PIECE_CHARS:
            return count(text, _COUNT_ALL, encoding)[1]
        pieces = range(0, len(text), _PIECE_CHARS)
        counted = sum(count(text[start : start + _PIECE_CHARS], _COUNT_ALL, encoding)[1] for start in pieces)
    except UnicodeEncodeError:  # half of a surrogate pair is no text of anybody's
        return bytes_bound(text)
    return counted + PART_TOKENS_MAX * max(0, len(pieces) - 1)


@cache
def _longer_forms() -> tuple[Mapping[str, int], re.Pattern[str]]:
    """The characters whose compatibility form has more bytes, and how many more. Made once, in 80 ms."""
    longer: dict[str, int] = {}
    for char in map(chr, _CHARS_WITH_LONGER_FORM):
        if unicodedata.decomposition(char):
            more = len(unicodedata.normalize("NFKC", char).encode()) - len(char.encode())
            if more > 0:
                longer[char] = more
    return longer, re.compile(f"[{''.join(map(re.escape, longer))}]")
