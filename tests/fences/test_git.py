"""A fence in a git remote: the server takes fence and branches together, or refuses both."""

import os
import stat
import subprocess

import pytest

import relet
from relet.core import limits
from relet.fences import GitFence
from tests.fences.repository import Clone, git, make_remote
from tests.waiting import eventually

FENCE = "refs/relet/work"


@pytest.fixture
def remote(tmp_path):
    return make_remote(tmp_path / "remote")


@pytest.fixture
def old(remote, tmp_path):
    return Clone(remote, tmp_path / "old")


@pytest.fixture
def new(remote, tmp_path):
    return Clone(remote, tmp_path / "new")


@pytest.fixture
def fence(old):
    return GitFence(old.folder)


def refs(remote):
    lines = git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split() for line in lines)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_branches_and_fence_move_together_at_the_end_of_the_block(fence, old, remote):
    with fence.write("work", 1) as target:
        target.push("main", old.commit("main", "one"))
        target.push("side", old.commit("side", "two"))
        assert set(refs(remote)) == {FENCE}
        raised = refs(remote)[FENCE]
    assert set(refs(remote)) == {FENCE, "refs/heads/main", "refs/heads/side"}
    assert refs(remote)[FENCE] != raised
    assert (old.text("main"), old.text("side")) == ("one", "two")
    assert "token: 1" in git(remote, "cat-file", "commit", FENCE)


def test_the_fence_moves_with_every_push_of_the_same_token(fence, old, remote):
    """A ref that does not move is not sent, and what is not sent the server does not look at."""
    seen = set()
    for text in ("one", "two", "three"):
        with fence.write("work", 1) as target:
            target.push("main", old.commit("main", text))
        seen.add(refs(remote)[FENCE])
    assert len(seen) == 3


def test_a_raise_while_the_block_runs_refuses_its_end_whatever_was_fetched_meanwhile(fence, old, new, remote):
    with fence.write("work", 1) as target:
        target.push("main", old.commit("main", "one"))
    before = refs(remote)
    with pytest.raises(relet.StaleToken) as refused, fence.write("work", 1) as target:
        target.push("main", old.commit("main", "late"))
        GitFence(new.folder).raise_to("work", 2)
        old.git("fetch", "--quiet", "origin", "+refs/*:refs/remotes/origin/*", f"+{FENCE}:{FENCE}")
    assert (refused.value.token, refused.value.current_token) == (1, 2)
    assert refs(remote)["refs/heads/main"] == before["refs/heads/main"]
    assert old.text("main") == "one"


def test_the_server_itself_refuses_who_has_not_seen_the_newest_fence(fence, old, new, monkeypatch):
    """Between the look at the fence and the push: the look is not what protects."""
    fence.raise_to("work", 1)
    push = fence._push

    def late(*arguments):
        monkeypatch.setattr(fence, "_push", push)
        GitFence(new.folder).raise_to("work", 2)
        return push(*arguments)

    monkeypatch.setattr(fence, "_push", late)
    with pytest.raises(relet.StaleToken):
        fence._move("work", 1, [fence.prepared("main", old.commit("main", "late"), False)])
    assert old.head("main") is None


def test_a_branch_that_holds_other_work_is_not_overwritten(fence, old, new):
    new.push("main", new.commit("main", "by a person"))
    stray = old.git("commit-tree", old.git("mktree", text=""), "-m", "stray")
    with fence.write("work", 1) as target:
        with pytest.raises(relet.Conflict, match="does not contain; fetch"):
            target.push("main", stray)
        target.push("main", stray, force=True)
    assert old.head("main") == stray


@pytest.mark.parametrize("force", [False, True])
def test_a_branch_that_a_person_moves_meanwhile_is_a_conflict_and_nothing_moves(fence, old, new, remote, force):
    new.push("main", new.commit("main", "one"))
    with (
        pytest.raises(relet.Conflict, match="main was moved meanwhile by somebody without a token"),
        fence.write("work", 1) as target,
    ):
        target.push("main", old.commit("main", "mine"), force=force)
        target.push("side", old.commit("side", "mine too"))
        new.push("main", new.commit("main", "by a person"))
        before = refs(remote)
    assert refs(remote) == before
    assert old.text("main") == "by a person"


def test_a_refusal_by_the_host_is_a_conflict_in_its_own_words_and_nothing_moves(fence, old, remote):
    fence.raise_to("work", 1)
    script(remote / "hooks" / "update", 'case "$1" in refs/heads/side) echo "side is closed"; exit 1;; esac')
    before = refs(remote)
    with (
        pytest.raises(relet.Conflict, match=r"the remote refused the push, and took nothing: .*hook declined"),
        fence.write("work", 1) as target,
    ):
        target.push("main", old.commit("main", "one"))
        target.push("side", old.commit("side", "two"))
    assert refs(remote) == before


def test_an_exception_and_an_empty_block_push_nothing(fence, old, remote):
    with pytest.raises(ValueError, match="midway"), fence.write("work", 1) as target:
        target.push("main", old.commit("main", "half"))
        raise ValueError("midway")
    before = refs(remote)
    with fence.write("work", 1):
        pass
    assert refs(remote) == before
    assert set(before) == {FENCE}


@pytest.mark.parametrize(
    "branch", ["--delete", "-f", "a..b", "a b", "a:b", "refs/heads/../x", "ends.lock", "", "+main"]
)
def test_a_name_that_is_no_branch_is_refused(fence, old, branch):
    commit = old.commit("main", "one")
    with fence.write("work", 1) as target, pytest.raises(relet.Invalid, match="branch: "):
        target.push(branch, commit)
        target.push("+main" if branch == "+main" else "a:b", commit)
    assert old.head("main") is None


@pytest.mark.parametrize("commit", ["--help", "--upload-pack=touch x", "0" * 40, "HEAD^{tree}", "main"])
def test_what_is_no_commit_of_the_clone_is_not_found(fence, commit):
    with fence.write("work", 1) as target, pytest.raises(relet.NotFound, match="has no commit"):
        target.push("main", commit)


def test_a_branch_is_pushed_once_in_a_block(fence, old):
    with fence.write("work", 1) as target:
        target.push("main", old.commit("main", "one"))
        with pytest.raises(relet.Invalid, match="'main' is pushed already"):
            target.push("main", old.commit("main", "two"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"remote": "--upload-pack=x"}, "looks like an option"),
        ({"remote": ""}, "remote: has 0 characters"),
        ({"timeout": 0}, "timeout: "),
    ],
)
def test_odd_options_are_refused(old, options, problem):
    with pytest.raises(relet.Invalid, match=problem):
        GitFence(old.folder, **options)


def test_a_folder_that_is_no_clone_is_told(tmp_path):
    with pytest.raises(relet.Invalid, match=r"repo: .* is no folder"):
        GitFence(tmp_path / "gone")
    with pytest.raises(relet.Unavailable, match="to be a git repository"):
        GitFence(tmp_path).raise_to("work", 1)


def test_a_remote_that_cannot_be_reached_is_unavailable(old):
    with pytest.raises(relet.Unavailable, match=r"git ls-remote failed .*fatal:") as refused:
        GitFence(old.folder, remote="nowhere").raise_to("work", 1)
    assert refused.value.code == "RELET-FENCE-TARGET"


@pytest.mark.slow
def test_a_remote_that_hangs_is_unavailable_in_time_and_leaves_no_process(old, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_SSH_COMMAND", f"echo $$ >{tmp_path}/pid; exec sleep 300 #")
    old.git("remote", "add", "far", "ssh://nobody@127.0.0.1/work")
    with pytest.raises(relet.Unavailable, match=r"it took longer than 2 s"):
        GitFence(old.folder, remote="far", timeout="2s").raise_to("work", 1)
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(pid))


def alive(pid):
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(told.strip()) and not told.strip().startswith("Z")


def test_a_push_that_arrived_and_was_not_answered_is_looked_for(fence, old, remote):
    fence.raise_to("work", 1)
    script(remote / "hooks" / "reference-transaction", '[ "$1" != committed ] || kill -9 $PPID')
    with fence.write("work", 1) as target:
        target.push("main", old.commit("main", "one"))
    assert old.text("main") == "one"


def test_a_push_of_which_nothing_is_known_is_unknown_and_a_raise_unavailable(fence, old, tmp_path):
    fence.raise_to("work", 1)
    commit = old.commit("main", "one")
    old.git("config", "remote.origin.receivepack", str(script(tmp_path / "receive", "exit 1")))
    with (
        pytest.raises(relet.OutcomeUnknown, match="the push ended without an answer") as refused,
        fence.write("work", 1) as target,
    ):
        target.push("main", commit)
    assert refused.value.code == "RELET-COMMIT"
    with pytest.raises(relet.Unavailable):
        fence.raise_to("work", 2)


def test_a_ref_that_names_no_token_is_left_as_it_is(fence, old, remote):
    old.git("push", "--quiet", "origin", f"{old.commit('main', 'one')}:{FENCE}")
    before = refs(remote)
    with pytest.raises(relet.Unavailable, match="refs/relet/work names no token") as refused:
        fence.raise_to("work", 1)
    assert refused.value.code == "RELET-DAMAGED"
    assert refs(remote) == before


def test_inside_a_hook_of_another_repository_the_clone_that_was_named_is_used(fence, new, monkeypatch, remote):
    new_objects = count_objects(new)
    with monkeypatch.context() as hook:
        hook.setenv("GIT_DIR", str(new.folder / ".git"))
        hook.setenv("GIT_INDEX_FILE", str(new.folder / "index"))
        fence.raise_to("work", 1)
    assert FENCE in refs(remote)
    assert count_objects(new) == new_objects


def count_objects(clone):
    return sum(len(files) for _, _, files in os.walk(clone.folder / ".git" / "objects"))


def test_a_resource_that_never_stands_still_is_unavailable_in_time(fence, new, monkeypatch):
    other, push = GitFence(new.folder), fence._push

    def overtaken(*arguments):
        seen = other._seen(FENCE)
        assert other._push(FENCE, seen, other._named("work", 1), []) == ""
        return push(*arguments)

    monkeypatch.setattr(limits, "FENCE_TRIES", 3)
    monkeypatch.setattr(fence, "_push", overtaken)
    with pytest.raises(relet.Unavailable, match="moved 3 times") as refused:
        fence._move("work", 2, [])
    assert refused.value.code == "RELET-FENCE-BUSY"
