"""Each broken app, and each broken store, is found; the seed is printed; the printed command finds it again."""

import shlex

import pytest

from relet.cli.main import run
from relet.testing import CrashTestFailed, crash_test

SEED = 7
FOUND = [
    ("outside_of_a_step", {"verify": "noted_once"}, "verify", "written down 2 times"),
    ("fresh_key", {}, "effects_within_contract", "declared Keyed"),
    ("shuffled", {}, "it_is_done", "RELET-STEP-CHANGED|kept for other arguments"),
    ("by_a_set", {}, "it_is_done", "kept for other arguments"),
    ("catches_everything", {}, "orders_heeded", "catches BaseException"),
    ("catches_the_wait", {"answers": {"publish": "accept"}}, "orders_heeded", "catches BaseException"),
    ("forgets", {"same_result": True}, "same_result", "without faults it is '3'"),
    ("gives_up", {}, "it_is_done", "hiccuped"),
    ("leaves", {}, "it_ends", "exit code 3"),
    ("saves", {"wrap": "stores:late"}, "nothing_after_its_end", "saved main"),
    ("saves", {"wrap": "stores:forgetful"}, "checkpoints_monotone", "acknowledged, and is not kept"),
]


@pytest.mark.parametrize(("kind", "options", "rule", "text"), FOUND, ids=lambda value: str(value)[:30])
def test_a_mistake_is_found_and_the_printed_command_finds_it_again(kind, options, rule, text, capsys):
    import broken

    if "verify" in options:
        options = {**options, "verify": getattr(broken, options["verify"])}
    with pytest.raises(CrashTestFailed, match=text) as failed:
        crash_test("broken:app", kind, seed=SEED, points="commits", **options)
    report = failed.value.report
    finding = report.findings[0]
    assert finding.rule == rule
    assert f"seed {SEED}" in str(report)
    assert finding.command in str(report)

    program, *words = shlex.split(finding.command)
    assert program == "relet"
    assert run(words) == 8
    out = capsys.readouterr().out
    assert f"FAIL  {finding.point}  {rule}: " in out
    assert f"seed {SEED}" in out
