"""What is secret, and its removal from texts before they are written where people read them.

Data stays as it is: payloads, results and answers to programs. What is told of them does not.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from relet.core import limits
from relet.core.errors import Invalid
from relet.core.secret_names import TOKEN, secret_variables, secret_words

REDACTED: Final = "[redacted]"
PATTERNS_VARIABLE: Final = "RELET_REDACT_ENV"
_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEAD: Final = r"(?<![\w.-])(?P<name>[\w.-]+)(?P<quote>\\?[\"'])?\s*(?P<sign>[=:])\s*"
_AROUND: Final = r"(?:\w+\()?(?:[bru]{1,2}(?=[\"']))?"
"""What stands before a value where a program shows it: `b'…'`, `SecretStr('…')`."""
_VALUE: Final = r'\\"(?:(?!\\").)*|"(?:\\.|[^"\\])*|' + r"'(?:\\.|[^'\\])*|[^\s&;,\"'<>()\[\]{}\\]+"
_QUOTES: Final = ('\\"', '"', "'")
_OF_FORMS: Final = ("://", "lt_", "r1.", "bearer", "basic", "authorization")
_OF_NAMES: Final = ("passw", "passphrase", "pwd", "secret", "credential", "authorization", "cookie", "key")
"""Without any of them nothing is looked for: most texts hold no secret, and lines of logs are many."""
_LINE: Final = re.compile(r"[^\r\n]*")
_EMPTY: Final = frozenset({"", "-", "none", "null", "true", "false", "***", REDACTED})
"""What stands where there is no secret, or none any more."""


class Secrets:
    """Values that some program has called secret. They are only ever added, by whichever thread."""

    def __init__(self) -> None:
        self._forms: dict[str, None] = {}
        self._built: tuple[int, re.Pattern[str] | None] = (0, None)
        self._watched = False

    def add(self, value: str, what: str = "value") -> None:
        """From now on this is not written. Raises `Invalid` for what is too short to be told from other text."""
        self._forms.update(_forms_of(value, what))

    def watch(self, environ: Mapping[str, str], patterns: Sequence[str] | None = None) -> None:
        """Add what an environment holds under these names, once; the first to say which decides it.

        Raises `Invalid`, each time, while one that was named in full is too short; then nothing was added.
        """
        if self._watched:
            return
        if patterns is None:
            given = environ.get(PATTERNS_VARIABLE, "")
            patterns = [name.strip() for name in given.split(",") if name.strip()] or None
        found: dict[str, None] = {}
        for name, value in secret_variables(environ, patterns):
            found |= _forms_of(value, name)
        self._forms.update(found)
        self._watched = True

    def forget(self) -> None:
        """As if nothing had been added; for tests."""
        self._forms, self._built, self._watched = {}, (0, None), False

    def text(self, text: str) -> str:
        """A text without what was added, and without what by its form, or by its name in the text, is a secret."""
        if (known := self._pattern()) is not None:
            text = known.sub(REDACTED, text)
        plain = text.lower()
        if any(hint in plain for hint in _OF_FORMS):
            text = _without_forms(text)
        if any(hint in plain for hint in _OF_NAMES) or ("token" in plain and _token().search(plain)):
            text = _without_named(text)
        return text

    def shown(self, value: Any) -> Any:
        """A noun, or a payload, as people may see it: what stands under a secret's name is hidden whole.

        The fields of a noun are ours, and none is a secret by its name.
        """
        if type(value) is str:
            return self.text(value)
        if isinstance(value, dict):
            return {self.shown(key): self._item(key, item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self.shown(item) for item in value)
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            seen = {name: self.shown(item) for name, item in fields.items()}
            return value if seen == fields else msgspec.structs.replace(value, **seen)
        return value

    def _item(self, key: Any, item: Any) -> Any:
        words = secret_words(key) if type(key) is str else ()
        if not words or item is None or item is True or item is False:
            return self.shown(item)
        # A number under `token` tells one holder from the next.
        return item if words == TOKEN and type(item) in (int, float) else REDACTED

    def _pattern(self) -> re.Pattern[str] | None:
        forms = self._forms
        # By their number: they only ever become more, so that no thread keeps a pattern that lacks one.
        if self._built[0] != len(forms):
            every = sorted(forms, key=len, reverse=True)
            self._built = len(every), re.compile("|".join(map(re.escape, every)))
        return self._built[1]


def _forms_of(value: str, what: str) -> dict[str, None]:
    """How it may be written. Raises `Invalid` for what is too short to be told from other text."""
    if type(value) is not str or len(value) < limits.SECRET_CHARS_MIN:
        raise Invalid(
            f"{what}: is no text of at least {limits.SECRET_CHARS_MIN} characters; what is shorter is found in "
            "words that are no secrets. Take a longer secret, or keep it under a name such as `password`",
            field=what,
        )  # fmt: skip
    return dict.fromkeys(_written(value))


def _written(value: str) -> Iterator[str]:
    """As it is, as JSON and Python write it, in a URL, in base64, and line by line."""
    raw = value.encode("utf-8", "surrogatepass")
    percent = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
    yield from (value, repr(value)[1:-1], ascii(value)[1:-1], percent, percent.replace("%20", "+"))
    yield msgspec.json.encode(raw.decode("utf-8", "replace")).decode()[1:-1]
    if not value.isascii():
        import json  # a command that has nothing to hide of this kind ends without it

        yield json.dumps(value)[1:-1]
    yield b64encode(raw).decode().rstrip("=")
    if "\n" in value:
        yield from (line for each in value.splitlines() if len(line := each.strip()) >= limits.SECRET_CHARS_MIN)


@cache
def _shapes() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compiled when there is a text to look at: a command of the shell may end without one."""
    from relet.core.access import KEY

    own = rf"{KEY.pattern}|\br1\.[0-9]{{1,16}}\.[0-9a-f]{{32}}\.[\w-]+"
    bearer = r"(?P<scheme>\b(?i:bearer|basic)\s+)(?P<credential>[\w.~+/-]{16,}=*)"
    header = r"(?P<header>\b(?i:authorization)\W{1,4}\w+\s+)(?=\S{0,200}\d)[\w.~+/-]{8,}=*"
    # Somebody's password may have what a URL would have in percents; a port with a path behind it is none.
    who = r"(?P<who>://[^\s/@:]*:)(?!\*\*\*@|\d{1,5}[/?#])[^\s\"'<>]{1,200}(?=@)|(?<=://)[^\s/@:]{16,}(?=@)"
    return re.compile(rf"{header}|{bearer}|{who}|{own}"), re.compile(_HEAD + _AROUND)


def _without_forms(text: str) -> str:
    """Keys and handles of ours, credentials in headers, and passwords in URLs."""

    def hidden(found: re.Match[str]) -> str:
        return f"{found['header'] or found['scheme'] or found['who'] or ''}{REDACTED}"

    return _shapes()[0].sub(hidden, text)


def _without_named(text: str) -> str:
    """Values whose name says it: `password=…`, `"api_key": "…"`, `Authorization: …`.

    Quotes stay, and a bare value behind a name in quotes gets them: what was JSON is JSON.
    """
    kept, at = [], 0
    for head in _shapes()[1].finditer(text):
        if head.start() < at or not (words := secret_words(head["name"])):
            continue
        if (found := _value().match(text, head.end())) is None:
            continue
        opening = next((sign for sign in _QUOTES if found[0].startswith(sign)), "")
        start, end = found.start() + len(opening), _end_of(text, head, found, words)
        if end > start:
            quote = "" if opening else head["quote"] or ""
            kept += [text[at:start], f"{quote}{REDACTED}{quote}"]
            at = end
    return "".join([*kept, text[at:]]) if kept else text


@cache
def _token() -> re.Pattern[str]:
    """The word, but before a number alone, as at the end of most lines of ours."""
    return re.compile(r"token(?!=\d+(?![^\s&;,\"'<>()\[\]{}\\]))")


@cache
def _value() -> re.Pattern[str]:
    return re.compile(_VALUE, re.DOTALL)


def _end_of(text: str, head: re.Match[str], found: re.Match[str], words: tuple[str, ...]) -> int:
    """Where what is to be hidden behind a name ends, before a closing quote; where it begins, if it is nothing."""
    value = found[0].strip("\\\"'")
    if value.lower() in _EMPTY or value.startswith(REDACTED) or (words == TOKEN and value.isdigit()):
        return head.end()
    if head["sign"] == ":" and value == found[0]:
        return _end_of_header(text, head, found, words)
    return found.end()


def _end_of_header(text: str, head: re.Match[str], found: re.Match[str], words: tuple[str, ...]) -> int:
    """Behind a colon sentences stand too, as in our own errors: what is a plain word is left there."""
    if words[0].startswith("cookie") and "=" in found[0]:
        line = _LINE.match(text, found.start())
        assert line is not None, "it matches nothing, too"
        return line.end()
    value = found[0].rstrip(".:")
    is_word = value.isalpha() or len(value) < limits.SECRET_CHARS_MIN
    return head.end() if is_word else found.end()


SECRETS: Final = Secrets()
"""Of this process, whichever of its programs writes."""


def redact(*values: str) -> None:
    """Never write these values in logs, errors and pages of this process. Raises `Invalid` for a very short one."""
    for value in values:
        SECRETS.add(value)
