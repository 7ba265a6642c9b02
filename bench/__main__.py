"""`python -m bench`: measure, print the table, and fail when a bar is missed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from bench.bars import Bar, Judge, Result
from bench.cases import CASES, Case
from bench.measure import FsyncProbe, Ground

MEMORY_FOLDER = Path("/dev/shm")
HEAD = ("bar", "what", "floor", "relet", "ratio", "bar", "goal", "")
HIDDEN_FSYNC = 60
"""A disk that answers faster than this many microseconds does not wait for its medium."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was asked for; 1 when a bar is missed."""
    options = parse(argv)
    if options.list:
        print("\n".join(f"{bar.name:4} {bar.what}" for case in CASES for bar in case.bars))
        return 0
    with ground_of(options) as ground:
        fsync_us = FsyncProbe(ground.folder).us()
        print(machine_line(ground, fsync_us), file=sys.stderr)
        results = list(run(options.only, ground))
    print(table(results, judged=not ground.smoke))
    if options.json:
        options.json.write_text(json.dumps(report(results, ground, fsync_us), indent=2) + "\n")
    missed = [result for result in results if result.missed]
    if ground.smoke:
        print("Smoke: it runs. Nothing was judged.")
        return 0
    return 1 if missed else 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--smoke", action="store_true", help="one short round of each, to see that it runs; judges nothing"
    )
    parser.add_argument("--only", type=cases_named, default=CASES, metavar="B1,B2", help="these bars only")
    parser.add_argument("--floors", action="store_true", help="the bare loops alone, without relet")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="where to put the files; the disk matters")
    parser.add_argument(
        "--peers-python",
        type=Path,
        metavar="PATH",
        help="a Python with the peers of B4 and B11; see make bench-peers",
    )
    parser.add_argument(
        "--deep", action="store_true", help="B7 at 1e7 waiting tasks too: minutes, and 8 GB of memory"
    )
    parser.add_argument("--list", action="store_true", help="tell what there is to measure")
    return parser.parse_args(argv)


def cases_named(names: str) -> tuple[Case, ...]:
    """The cases of a list of names."""
    wanted = {name.strip().upper() for name in names.split(",") if name.strip()}
    if unknown := wanted - {case.name for case in CASES}:
        raise argparse.ArgumentTypeError(f"no such bar: {', '.join(sorted(unknown))}; --list tells what there is")
    return tuple(case for case in CASES if case.name in wanted)


@contextmanager
def ground_of(options: argparse.Namespace) -> Iterator[Ground]:
    """Fresh folders on the disk and in memory, and a state folder that is nobody's."""
    quick = MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else options.dir
    with (
        tempfile.TemporaryDirectory(prefix="relet-bench-", dir=options.dir) as folder,
        tempfile.TemporaryDirectory(prefix="relet-bench-", dir=quick) as quick_folder,
    ):
        os.environ["RELET_STATE_DIR"] = folder
        # As installed: with compiled files at hand, made at the first start of each program and not counted.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(quick_folder) / "compiled")
        yield Ground(
            Path(folder), Path(quick_folder), smoke=options.smoke, with_relet=not options.floors,
            peers_python=options.peers_python, deep=options.deep,
        )  # fmt: skip


def run(cases: Sequence[Case], ground: Ground) -> Iterator[Result]:
    """Measure one case after the other, and say so: some take a minute."""
    for case in cases:
        began = time.monotonic()
        yield from case.measure(ground)
        print(f"{case.name}: {time.monotonic() - began:.1f} s", file=sys.stderr)


def machine_line(ground: Ground, fsync_us: float) -> str:
    """Where these figures are from."""
    note = "" if fsync_us > HIDDEN_FSYNC else " (too fast for a real disk: --dir names another)"
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, "
        f"fsync {fsync_us:.0f} us in {ground.folder.parent}{note}"
    )


def table(results: Sequence[Result], *, judged: bool) -> str:
    """One line for each result, columns aligned."""
    rows = [HEAD, *(row_of(result, judged=judged) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if column < 2 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def row_of(result: Result, *, judged: bool) -> tuple[str, ...]:
    """The cells of one result."""
    bar = result.bar
    relet = "-" if result.relet is None else f"{result.relet:,.{bar.digits}f}"
    score = "-" if result.score is None else limit(bar, result.score)
    verdict = result.verdict if judged else "not judged"
    if not result.steady:
        verdict += ", disk unsteady"
    return (
        bar.name, f"{bar.what} [{bar.unit}]", f"{result.floor:,.{bar.digits}f}", relet, score,
        limit(bar, bar.bar), limit(bar, bar.goal), verdict,
    )  # fmt: skip


def limit(bar: Bar, value: float) -> str:
    """A figure in the form in which the bar is judged."""
    match bar.judge:
        case Judge.RATIO:
            return f"{value:.2f} x"
        case Judge.EXTRA:
            return f"{value:+.0f} {bar.unit}"
        case Judge.VALUE:
            return f"{value:.{bar.digits}f} {bar.unit}"


def report(results: Sequence[Result], ground: Ground, fsync_us: float) -> dict[str, object]:
    """The same as JSON."""
    return {
        "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version(), "machine": platform.platform(),
        "cores": os.cpu_count(), "fsync_us": round(fsync_us, 1), "smoke": ground.smoke,
        "results": [
            {
                "name": result.bar.name, "what": result.bar.what, "unit": result.bar.unit,
                "judge": result.bar.judge.value, "floor": result.floor, "relet": result.relet, "score": result.score,
                "bar": result.bar.bar, "goal": result.bar.goal, "verdict": result.verdict, "steady": result.steady,
                "fsync_us": round(result.fsync_us, 1),
            }
            for result in results
        ],
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
