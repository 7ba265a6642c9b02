"""What a process did to its files and what it told, read from a trace of its system calls."""

import re
from typing import NamedTuple

STRACE = (
    "strace", "-f", "-y", "-xx", "-s", "70000",
    "-e", "trace=pwrite64,write,fsync,fdatasync,ftruncate,unlink,rename,openat",
)  # fmt: skip
LINE = re.compile(r"(?P<pid>\d+) +(?:(?P<whole>\w+\(.*)|<\.\.\. \w+ resumed>(?P<rest>.*))")
UNFINISHED = " <unfinished ...>"
OPENED = re.compile(r'openat\([^"]*"(?P<path>[^"]*)", (?P<flags>[A-Z_|]+)[^=]*= (?P<fd>-?\d+)')
ON_FD = re.compile(r"(?P<call>\w+)\((?P<fd>\d+)(?:<(?P<path>[^>]*)>)?(?:, (?P<more>.*))?\) += (?P<answer>-?\d+)")
ON_PATH = re.compile(r'(?P<call>unlink|rename)\("(?P<path>[^"]*)"(?:, "(?P<to>[^"]*)")?\) += 0')
STDOUT = 1
AT_ONCE = ("write(", "pwrite64(")


class Write(NamedTuple):
    """Bytes at an offset, or at the end of the file where there is none."""

    path: str
    data: bytes
    offset: int | None


class Made(NamedTuple):
    """A file that is there from now on, and may have been before."""

    path: str


class Cut(NamedTuple):
    """A file of this length, made if need be."""

    path: str
    length: int


class Sync(NamedTuple):
    """What was done to the file or folder before `since`, an index of the events, is on disk."""

    path: str
    since: int


class Unlink(NamedTuple):
    path: str


class Rename(NamedTuple):
    path: str
    to: str


class Told(NamedTuple):
    """A line on stdout."""

    line: str


def events_of(trace, folder):
    """What happened in the folder, in order. A write or a line told counts from its start, a sync from its end."""
    events, begun = [], {}
    for row in trace.read_text(encoding="ascii").splitlines():
        if (found := LINE.fullmatch(row)) is None:
            continue
        since, call = len(events), found["whole"]
        if call is None:
            since, call = begun.pop(found["pid"], (0, ""))
            call += found["rest"]
        elif call.endswith(UNFINISHED):
            call = call.removesuffix(UNFINISHED)
            if call.startswith(AT_ONCE):
                call += ") = 1"
            else:
                begun[found["pid"]] = (since, call)
        if (event := _event(call, since, f"{folder}/")) is not None:
            events.append(event)
    return events


def _event(call, since, inside):
    if found := OPENED.match(call):
        path = _text(found["path"])
        makes = int(found["fd"]) >= 0 and "O_CREAT" in found["flags"]
        if not makes or not path.startswith(inside):
            return None
        return Cut(path, 0) if "O_TRUNC" in found["flags"] else Made(path)
    if found := ON_PATH.match(call):
        path = _text(found["path"])
        if not path.startswith(inside):
            return None
        return Unlink(path) if found["call"] == "unlink" else Rename(path, _text(found["to"]))
    if (found := ON_FD.match(call)) is None or int(found["answer"]) < 0:
        return None
    if found["call"] == "write" and int(found["fd"]) == STDOUT:
        return Told(_bytes(_quoted(found["more"])).decode())
    path = _text(found["path"] or "")
    if not f"{path}/".startswith(inside):
        return None
    match found["call"]:
        case "pwrite64":
            return Write(path, _bytes(_quoted(found["more"])), int(found["more"].rpartition(", ")[2]))
        case "write":
            return Write(path, _bytes(_quoted(found["more"])), None)
        case "ftruncate":
            return Cut(path, int(found["more"]))
        case _:
            return Sync(path, since)


def _quoted(text):
    return text[1 : text.index('"', 1)]


def _bytes(escaped):
    return bytes.fromhex(escaped.replace("\\x", ""))


def _text(escaped):
    return _bytes(escaped).decode() if escaped.startswith("\\x") else escaped
