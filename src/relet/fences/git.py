"""A fence in a git remote: a ref of our own moves with every push, and the server refuses both or takes both.

The ref `refs/relet/RESOURCE` points to an empty commit that names the token. Every push moves it, atomically with the
branches, from exactly the commit that was read: the server itself refuses a push of whoever has not seen the newest
one. The block collects pushes and sends them at its end, so a stopped holder blocks nobody.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from relet.core import border, limits
from relet.core.errors import DAMAGED, Conflict, Error, Invalid, NotFound, OutcomeUnknown, Unavailable
from relet.core.holding import check_held
from relet.fences.admission import held, spelled, stale, undone

WHERE: Final = "GitFence"
REFS: Final = "refs/relet/"
_TOKEN = re.compile(r"^token: (\d{1,16})$", re.MULTILINE)
ENVIRONMENT: Final = {
    "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_AUTHOR_NAME": "relet",
    "GIT_AUTHOR_EMAIL": "relet@localhost", "GIT_COMMITTER_NAME": "relet", "GIT_COMMITTER_EMAIL": "relet@localhost",
}  # fmt: skip
# Set by git for its hooks; they would send our commands to another repository than the one that was named.
OF_HOOKS: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)


class Seen(NamedTuple):
    """What the remote's fence pointed to, and the token that it names."""

    commit: str
    token: int


class Push(NamedTuple):
    """One branch, the commit that it shall point to, and what it points to until then ("" for nothing)."""

    branch: str
    commit: str
    expected: str


class GitTarget:
    """What a block writes into: branches to move, all together at the end of the block."""

    def __init__(self, fence: GitFence) -> None:
        self._fence = fence
        self.pushes: list[Push] = []

    def push(self, branch: str, commit: str, *, force: bool = False) -> None:
        """Move a branch of the remote to a commit of the clone, which must contain what the branch has now.

        `force` drops that condition, not the one that nobody moves the branch meanwhile. Raises `NotFound` for a
        commit that the clone has not, `Conflict` when the branch holds work that the commit does not.
        """
        if len(self.pushes) >= limits.FENCE_ITEMS_MAX or any(one.branch == branch for one in self.pushes):
            raise border.invalid("branch", f"{border.shown(branch)} is pushed already; push each branch once")
        self.pushes.append(self._fence.prepared(branch, commit, border.flag("force", force)))


class GitFence:
    """Guards resources in the remote of a local clone; `repo` is the clone's folder.

    Every command of git ends after `timeout`. The host must take refs outside of heads and tags, and atomic pushes.
    """

    def __init__(
        self, repo: str | os.PathLike[str], *, remote: str = "origin", timeout: Any = limits.FENCE_GIT_MS / 1_000
    ) -> None:
        self._repo = os.path.abspath(repo)
        self._remote = border.name("remote", remote)
        self._timeout_s = border.duration_ms("timeout", timeout, least=1) / 1_000
        if self._remote.startswith("-"):
            raise border.invalid("remote", f"{border.shown(remote)} looks like an option; give the name of a remote")
        if not os.path.isdir(self._repo):
            raise border.invalid("repo", f"{self._repo} is no folder; give the folder of a clone")

    def raise_to(self, resource: str, token: int) -> None:
        """Accept nothing smaller than this token from now on. Raises `StaleToken`, `Unavailable`, `Invalid`."""
        resource, token = held(resource, token)
        self._move(resource, token, [])

    @contextlib.contextmanager
    def write(self, resource: str, token: int) -> Iterator[GitTarget]:
        """A target with `push(branch, commit)`; at the end of the block all branches move, or none.

        Raises `StaleToken` before the block or at its end, `Conflict` when somebody without a token has moved a
        branch meanwhile, `OutcomeUnknown` when the last answer was lost.
        """
        resource, token = held(resource, token)
        self._move(resource, token, [])
        target = GitTarget(self)
        yield target
        if target.pushes:
            self._move(resource, token, target.pushes)

    def prepared(self, branch: str, commit: str, force: bool) -> Push:
        """A push that has been judged by what the remote has now; the remote is not changed."""
        ref = f"refs/heads/{border.name('branch', branch)}"
        if branch.startswith("-") or self._git("check-ref-format", ref).returncode:
            raise border.invalid("branch", f"{border.shown(branch)} is no name of a branch")
        named = border.name("commit", commit)
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}")
        if found.returncode:
            raise NotFound(f"{WHERE}: {self._repo} has no commit {border.shown(commit)}", commit=commit)
        ours, theirs = found.stdout.strip(), self._refs(ref).get(ref, "")
        if theirs and not force and self._git("merge-base", "--is-ancestor", theirs, ours).returncode:
            raise Conflict(
                f"{WHERE}: {branch} is at {theirs[:12]}, which {ours[:12]} does not contain; fetch, put your work on "
                "top of it, and push that",
                branch=branch, commit=ours, current=theirs,
            )  # fmt: skip
        return Push(branch, ours, theirs)

    def _move(self, resource: str, token: int, pushes: list[Push]) -> None:
        ref = f"{REFS}{spelled(resource)}"
        for _ in range(limits.FENCE_TRIES):
            seen = self._seen(ref)
            if seen.token > token:
                raise stale(WHERE, resource, token, seen.token)
            if seen.token == token and not pushes:
                return
            named = self._named(resource, token)
            check_held(token)
            refusals = self._push(ref, seen, named, pushes)
            if not refusals:
                return
            if self._refs(ref).get(ref, "") == seen.commit:
                self._refuse_moved(pushes)
                raise Conflict(
                    f"{WHERE}: the remote refused the push, and took nothing: {refusals}", refusals=refusals
                )
        raise Unavailable(
            f"{WHERE}: {resource!r} moved {limits.FENCE_TRIES} times while it was to be moved here; nothing was "
            "written, try again",
            code="RELET-FENCE-BUSY", resource=resource,
        )  # fmt: skip

    def _push(self, ref: str, seen: Seen, fence: str, pushes: list[Push]) -> str:
        """Move fence and branches, each from where it was; what the remote refused, and nothing if it took them."""
        moves = [
            (ref, fence, seen.commit),
            *((f"refs/heads/{one.branch}", one.commit, one.expected) for one in pushes),
        ]
        done = self._git(
            "push", "--porcelain", "--atomic", "--no-follow-tags", "--recurse-submodules=no",
            *(f"--force-with-lease={target}:{expected}" for target, _, expected in moves),
            self._remote, *(f"{commit}:{target}" for target, commit, _ in moves),
        )  # fmt: skip
        if done.returncode == 0:
            return ""
        if "does not support --atomic" in done.stderr:
            raise Invalid(f"repo: the remote {self._remote} takes no atomic pushes", field="repo", engine=done.stderr)
        if refusals := [line for line in done.stdout.splitlines() if line.startswith("!")]:
            return "; ".join(line.split("\t", 1)[-1].replace("\t", " ") for line in refusals)
        with contextlib.suppress(Error):
            # Asked and not guessed: the push may have arrived, though its answer did not.
            if self._refs(ref).get(ref) == fence:
                return ""
        if not pushes:
            raise undone(f"{WHERE}: git push", RuntimeError(_reason(done.stderr)))
        raise OutcomeUnknown(
            f"{WHERE}: the push ended without an answer ({_reason(done.stderr)}); look before you repeat",
            code="RELET-COMMIT", engine=done.stderr,
        )  # fmt: skip

    def _refuse_moved(self, pushes: list[Push]) -> None:
        now = self._refs(*(f"refs/heads/{one.branch}" for one in pushes)) if pushes else {}
        for one in pushes:
            if now.get(f"refs/heads/{one.branch}", "") != one.expected:
                raise Conflict(
                    f"{WHERE}: {one.branch} was moved meanwhile by somebody without a token; nothing was written. "
                    "Fetch, put your work on top of it, and push that",
                    branch=one.branch,
                )

    def _seen(self, ref: str) -> Seen:
        commit = self._refs(ref).get(ref, "")
        if not commit:
            return Seen("", 0)
        if self._git("cat-file", "-e", f"{commit}^{{commit}}").returncode:
            self._must(
                "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
                self._remote, f"+{ref}:{ref}",
            )  # fmt: skip
            commit = self._must("rev-parse", "--verify", ref)
        found = _TOKEN.search(self._must("cat-file", "commit", commit))
        if not found:
            raise Unavailable(f"{WHERE}: {ref} names no token; it was left as it is", code=DAMAGED, ref=ref)
        return Seen(commit, int(found[1]))

    def _named(self, resource: str, token: int) -> str:
        """A new commit that names the token. Never the same twice: a ref that does not move is not looked at."""
        tree = self._must("hash-object", "-t", "tree", "-w", "--stdin")
        message = f"relet fence\n\nresource: {resource}\ntoken: {token}\nnonce: {secrets.token_hex(16)}"
        return self._must("commit-tree", tree, "-m", message)

    def _refs(self, *refs: str) -> dict[str, str]:
        lines = self._must("ls-remote", "--refs", self._remote, *refs).splitlines()
        found = [line.split("\t", 1) for line in lines]
        return {
            ref: commit for commit, ref in found if ref in refs
        }  # git takes a name for the end of longer ones too

    def _must(self, *arguments: str) -> str:
        done = self._git(*arguments)
        if done.returncode:
            raise undone(f"{WHERE}: git {arguments[0]}", RuntimeError(_reason(done.stderr)))
        return done.stdout.strip()

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name not in OF_HOOKS}
        kept.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
        command = ["git", "-C", self._repo, *arguments]
        with subprocess.Popen(  # noqa: S603 - no shell; whatever a caller named was judged, or stands behind a colon
            command, env=kept | ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, encoding="utf-8", errors="replace", start_new_session=True,
        ) as git:  # fmt: skip
            try:
                out, err = git.communicate(timeout=self._timeout_s)
            except BaseException as wrong:
                # Its helpers too: an ssh that waits would keep the pipes open.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(git.pid, signal.SIGKILL)
                if not isinstance(wrong, subprocess.TimeoutExpired):
                    raise
                out, err = "", f"it took longer than {self._timeout_s:g} s"
        return subprocess.CompletedProcess(command, git.returncode or 0, out, err)


def _reason(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return next(
        (line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "no reason"
    )
