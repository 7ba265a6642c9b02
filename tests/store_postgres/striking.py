"""A client's transaction is struck at one of its statements: the server refuses it, or ends the connection."""

import contextlib

from relet.store.postgres import engine
from relet.store.postgres.runner import PostgresRunner

STRIKES = {
    "57P01": "SELECT pg_terminate_backend(pg_backend_pid())",
    **{code: f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$" for code in ("40001", "40P01", "55P03")},
}
"""By the code of the error: what is sent in place of a statement, so that the server itself says it."""


class Blows:
    """Counts the statements of transactions, the end of each as one more; strikes one of them, once."""

    def __init__(self):
        self.statements = self.alone = 0
        self._at = self._sent = None

    def strike(self, at, code):
        self.statements, self._at, self._sent = 0, at, STRIKES[code]

    @property
    def fell(self):
        return self._at is None

    def next(self):
        self.statements += 1
        if self._at == self.statements:
            self._at = None
            return self._sent
        return None


@contextlib.contextmanager
def striking(monkeypatch):
    """Of every client of this process."""
    blows = Blows()
    execute, end, asked = PostgresRunner._execute, PostgresRunner.end, engine.asked

    def struck(self, text, values):
        if (sent := blows.next()) is not None:
            text, values = sent, ()
        return execute(self, text, values)

    def struck_at_the_end(self):
        end(self)
        if (sent := blows.next()) is not None:
            execute(self, sent, ())

    def struck_alone(store, cursor, *asking):
        blows.alone += 1
        if (sent := blows.next()) is not None:
            cursor.execute(sent)
        return asked(store, cursor, *asking)

    monkeypatch.setattr(engine, "asked", struck_alone)
    monkeypatch.setattr(PostgresRunner, "_execute", struck)
    monkeypatch.setattr(PostgresRunner, "end", struck_at_the_end)
    yield blows
