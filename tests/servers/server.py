"""A program that serves from a folder of its own for as long as a block lasts, and can be treated badly."""

import contextlib
import signal
import subprocess

from tests.servers import at_work
from tests.servers.unprivileged import environment, new_folder, unprivileged
from tests.waiting import eventually


class Server:
    """What a kind of server adds: how it is prepared, its command, and how one sees that it answers."""

    NAME = "server"
    ENDS_BY = signal.SIGTERM

    process = None

    def __enter__(self):
        self.folder = new_folder(f"relet-{self.NAME}-")
        try:
            self._prepare()
            self.start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_):
        self._end()

    def start(self):
        """Start it over its folder; answers when it takes connections."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*map(str, self._command())],
                cwd=self.folder, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                **unprivileged(),
            )  # fmt: skip
        eventually(self._is_up)

    def stop(self, how=None):
        """By a signal, and awaited."""
        self.process.send_signal(how or self.ENDS_BY)
        self.process.wait(30)

    def restart(self, how=None):
        self.stop(how)
        self.start()

    def kill(self):
        """SIGKILL to it and to all that it started; answers when none is left."""
        at_work.kill(self.folder)
        self.process.wait(30)

    def freeze(self):
        """SIGSTOP to all its processes: connections stay open, nothing answers. Answers when all stand still."""
        at_work.freeze(self.folder)

    def thaw(self):
        at_work.thaw(self.folder)

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def _prepare(self):
        """Put into the folder what it starts from."""

    def _command(self):
        raise NotImplementedError

    def _answers(self):
        raise NotImplementedError

    def _environment(self):
        return environment(self.folder)

    def _is_up(self):
        assert self.process.poll() is None, f"{self.NAME} ended: {self.log}"
        return self._answers()

    def _run(self, program, *arguments):
        """Run a program to its end, in the folder and as the server's user."""
        done = subprocess.run(
            [str(program), *map(str, arguments)],
            cwd=self.folder, env=environment(self.folder), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, **unprivileged(),
        )  # fmt: skip
        assert done.returncode == 0, f"{program} failed: {done.stdout}{done.stderr}"

    def _end(self):
        if self.is_running:
            self.thaw()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.stop(self.ENDS_BY)
        at_work.clear(self.folder)
        if self.process is not None:
            self.process.wait(30)
