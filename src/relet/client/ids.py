"""Identifiers that sort by the time they were made (UUID version 7, RFC 9562)."""

from __future__ import annotations

import os
import time


def new_id() -> str:
    """A fresh id: 48 bits of UTC milliseconds, then random bits."""
    ms = time.time_ns() // 1_000_000
    tail = int.from_bytes(os.urandom(10), "big")
    value = (ms & 0xFFFF_FFFF_FFFF) << 80 | tail
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_call_id() -> str:
    """A fresh id for one call and its repetitions."""
    return os.urandom(12).hex()


def default_holder() -> str:
    """A label for this process: host and process id."""
    return f"{_host()}:{os.getpid()}"


def _host() -> str:
    if hasattr(os, "uname"):
        return os.uname().nodename or "host"
    return os.environ.get("COMPUTERNAME", "host")
