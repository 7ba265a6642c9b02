"""Log lines and spans leave without what is secret, whatever formats them and wherever they go."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from relet.core.border import shown
from relet.core.redaction import SECRETS

_FORMATTER: Final = logging.Formatter()


class Redacting(logging.Filter):
    """Takes secrets out of each record that passes: of its text, and of the error that it tells of."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - whoever logged it wrongly is told so by the handler, as ever
            self._clean_parts(record)
        else:
            if (clean := SECRETS.text(text)) != text:
                record.msg, record.args = clean, None
        self._clean_error(record)
        return True

    def _clean_parts(self, record: logging.LogRecord) -> None:
        """What cannot be put together is printed by the handler in its parts."""
        record.msg = _part(record.msg)
        if isinstance(record.args, Mapping):
            record.args = {name: _part(value) for name, value in record.args.items()}
        else:
            record.args = tuple(_part(value) for value in record.args or ())

    def _clean_error(self, record: logging.LogRecord) -> None:
        """An error that holds one goes on as text alone: others would format it anew."""
        if record.exc_info and record.exc_info[0] is not None:
            text = record.exc_text or _FORMATTER.formatException(record.exc_info)
            if (clean := SECRETS.text(text)) != text:
                record.exc_text, record.exc_info = clean, None
        if record.stack_info:
            record.stack_info = SECRETS.text(record.stack_info)


def _part(value: object) -> object:
    if type(value) is str:
        return SECRETS.text(value)
    return value if type(value) in (int, float) else shown(value)


_REDACTING: Final = Redacting()


def log_named(name: str) -> logging.Logger:
    """A logger whose lines are without what is secret, whatever handlers the program has."""
    log = logging.getLogger(name)
    log.addFilter(_REDACTING)  # once: the same filter is not added again
    return log


class RedactingFormatter(logging.Formatter):
    """For a handler of ours: whatever makes up a line, and whoever has logged it."""

    def format(self, record: logging.LogRecord) -> str:
        return SECRETS.text(super().format(record))


@contextmanager
def telling_errors(span: Any, failed: Any) -> Iterator[None]:
    """An error that is raised in it is told by the span of opentelemetry, as that would do by itself.

    `failed` is its status code of an error. The error itself is given to it where nothing in it is secret.
    """
    try:
        yield
    except Exception as wrong:
        told = f"{type(wrong).__name__}: {wrong}"
        text, lines = SECRETS.text(told), "".join(traceback.format_exception(wrong))
        if (clean := SECRETS.text(lines)) == lines and text == told:
            span.record_exception(wrong)
        else:
            span.add_event(
                "exception",
                {
                    "exception.type": type(wrong).__qualname__, "exception.message": SECRETS.text(str(wrong)),
                    "exception.stacktrace": clean,
                },
            )  # fmt: skip
        span.set_status(failed, text)
        raise
