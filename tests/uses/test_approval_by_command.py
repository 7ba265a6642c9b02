"""A person answers the approval flow by the `relet` command, in another process than the worker."""

import subprocess
import sys

import relet
from examples.approval_flow import flow
from examples.approval_flow.flow import Announcement, announce

COMMAND = "from relet.cli.entry import main; main()"


def command(url, *arguments):
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments, "--url", url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_person_sees_the_question_and_answers_it_and_a_second_answer_is_a_conflict(tmp_path, fresh, monkeypatch):
    url, site = f"sqlite:///{tmp_path / 'work.db'}", fresh()
    monkeypatch.setenv("SITE_URL", site.url)
    with relet.connect(url, holder="test") as db:
        announce.submit(db, topic="the new silo", id="a-1")
        flow.app.run_until_idle(db)
        shown = command(url, "waits")
        assert shown.returncode == 0, shown.stderr
        assert "a-1" in shown.stdout and "News about the new silo." in shown.stdout
        answered = command(url, "decide", "a-1", "publish", "edit", "--value", '"It opens."', "--by", "ann")
        assert answered.returncode == 0, answered.stderr
        late = command(url, "decide", "a-1", "publish", "deny", "--by", "bob")
        assert (late.returncode, "decided already" in late.stderr) == (11, True)
        flow.app.run_until_idle(db)
        made = db.result("a-1", returns=Announcement)
    assert (made.decision, made.by, made.text) == ("edit", "ann", "It opens.")
    assert [post["text"] for post in site.entries.values()] == ["It opens."]
