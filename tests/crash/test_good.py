"""A good app passes, whatever is done to it; and what the report says was done, was done."""

import pytest

import relet
from relet.testing import CrashTestFailed, crash_test


def test_each_thing_at_each_commit_of_a_good_app_leaves_one_result_and_one_mail():
    import good

    report = crash_test(
        good.app, good.short, {"topic": "grain"}, seed=1, points="commits", verify=good.sent_once, same_result=True
    )
    assert report.commits == ["claim", "keep_step search", "save main", "start_effect mail", "end_effect", "complete"]
    assert report.ok
    assert report.points == 6
    assert report.runs == report.planned == report.struck == 4 + 5 * 7
    assert report.unreached == []


def test_several_faults_in_one_run_at_commits_and_at_times():
    import good

    report = crash_test(
        "good:app", "long", {"topic": "grain"}, point="freeze-before:3,kill-after:5,drop:9,freeze-at:1ms",
        answers={"publish": "accept"}, signals={"go": 1}, verify=good.sent_once, same_result=True, seed=1,
    )  # fmt: skip
    assert report.runs == 1
    assert report.struck == 4


def test_the_same_seed_makes_the_same_runs(monkeypatch):
    plans = []
    monkeypatch.setattr(
        "relet.testing.crash.examine._Examination._all", lambda self, wanted, jobs: plans.append(wanted)
    )
    monkeypatch.setattr("relet.testing.crash.drive._Driving._mean_ms", lambda self, began: 100)
    for seed in (5, 5, 6):
        crash_test("good:app", "short", {"topic": "grain"}, seed=seed, points="random", runs=20)
    assert plans[0] == plans[1] != plans[2]


def test_an_effect_of_which_nobody_knows_waits_for_a_person_and_that_is_no_finding():
    import broken

    asked = []

    def ask(effect):
        asked.append(effect.name)
        return "applied"

    report = crash_test(broken.app, "unsure", reconcile=ask, seed=1, points="commits", runs=6)
    assert report.ok
    assert len(asked) == 7


def test_an_app_that_other_processes_cannot_import_is_refused_with_what_to_do():
    app = relet.App()

    @app.task("inner")
    def inner(run):
        pass

    with pytest.raises(relet.Invalid, match='give it as "module:app"'):
        crash_test(app, inner)


def test_a_check_that_breaks_is_a_finding_of_its_own():
    def check(db, task):
        raise KeyError("total")

    with pytest.raises(CrashTestFailed, match="verify: it raised KeyError: 'total'") as failed:
        crash_test("good:app", "short", {"topic": "grain"}, seed=3, verify=check)
    assert failed.value.report.findings[0].point == "none"
    assert "relet.testing.crash_test('good:app', 'short', …, seed=3, point='none')" in str(failed.value)


def test_runs_can_be_made_at_the_same_time():
    report = crash_test("good:app", "short", {"topic": "grain"}, seed=3, runs=6, jobs=2)
    assert report.ok
    assert report.runs == 6
