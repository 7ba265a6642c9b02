"""A bare repository and clones of it, by git itself."""

import subprocess

NAME = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "gc.auto=0"]


def git(folder, *arguments, text=None):
    done = subprocess.run(
        ["git", *NAME, *arguments], cwd=folder, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {arguments}: {done.stderr}"
    return done.stdout.strip()


def make_remote(folder):
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    git(folder, "config", "gc.auto", "0")
    return folder


class Clone:
    def __init__(self, remote, folder):
        git(remote, "clone", "--quiet", str(remote), str(folder))
        self.folder = folder

    def git(self, *arguments, text=None):
        return git(self.folder, *arguments, text=text)

    def head(self, branch):
        """What the remote's branch points to, fetched; None without it."""
        if not self.git("ls-remote", "--heads", "origin", f"refs/heads/{branch}"):
            return None
        self.git("fetch", "--quiet", "origin", f"refs/heads/{branch}")
        return self.git("rev-parse", "FETCH_HEAD")

    def commit(self, branch, text):
        """A commit on top of the remote's branch, whose one file says this; it is not pushed."""
        blob = self.git("hash-object", "-w", "--stdin", text=text)
        tree = self.git("mktree", text=f"100644 blob {blob}\tvalue\n")
        parent = self.head(branch)
        return self.git("commit-tree", tree, "-m", text, *(["-p", parent] if parent else []))

    def push(self, branch, commit):
        self.git("push", "--quiet", "--force", "origin", f"{commit}:refs/heads/{branch}")

    def text(self, branch):
        head = self.head(branch)
        return head and self.git("show", f"{head}:value")
