"""Mutants of what is kept: commits, histories, transactions of the user's, fences."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import STORE, Mutant

STORAGE: Final = (
    Mutant(
        "an event that was added after its task was written is in no history",
        ("history",),
        "store/sqlite/engine.py",
        "            if tx.loose:\n",
        "            if tx.loose and tx.refusals:\n",
        "tests/store/test_histories.py::test_an_operators_verbs_are_in_the_history_too",
    ),
    Mutant(
        "a user's own transaction is judged at its start alone",
        ("transactions",),
        "client/blocking_lease.py",
        "                if self.belief.ended is None:\n                    self._judge(own, ask)\n",
        "",
        f"{STORE}/test_own.py::test_a_lease_that_is_lost_meanwhile_undoes_it",
    ),
    Mutant(
        "a statement after a rollback commits by itself",
        ("transactions",),
        "store/sqlite/own.py",
        "        self.connection.set_commit_hook(lambda: not self._ending)\n",
        "",
        f"{STORE}/test_own.py::test_a_statement_that_rolls_all_back_lets_nothing_after_it_commit_by_itself",
    ),
    Mutant(
        "the triggers that guard decisions may be dropped",
        ("transactions",),
        "store/sqlite/own.py",
        "or (action in BESIDE_A_TABLE and two in RELETS)",
        "or (action in BESIDE_A_TABLE and second is None)",
        f"{STORE}/test_own.py::test_relets_tables_and_the_end_of_the_transaction_are_out_of_reach",
    ),
    Mutant(
        "a new holder does not raise the fence before it reads",
        ("P8",),
        "fences/sqlite.py",
        "        with self.write(resource, token):\n            pass",
        "        held(resource, token)",
        "tests/fences/test_sqlite.py::test_rows_of_any_shape_will_do",
    ),
    Mutant(
        "the log is not synced at a commit",
        ("P7",),
        "store/sqlite/engine.py",
        '"write", lambda: open_connection(file, synchronous="full", mutex=False)',
        '"write", lambda: open_connection(file, synchronous="normal", mutex=False)',
        f"{STORE}/test_commits.py::test_acknowledged_is_on_disk_except_renewals",
    ),
    Mutant(
        "what a transaction wrote before it raised is kept",
        ("P13",),
        "store/sqlite/lane.py",
        "            fate = Fate.UNDONE\n        rollback(connection)\n        raise",
        "            fate = Fate.UNDONE\n        commit(cursor)\n        raise",
        f"{STORE}/test_busy.py::test_what_a_transaction_raises_undoes_all_of_it",
    ),
    Mutant(
        "a verb in the user's own transaction has no savepoint",
        ("P13",),
        "store/sqlite/engine.py",
        "with nullcontext() if own is None else own.lifted(), connection:",
        "with nullcontext() if own is None else own.lifted():",
        f"{STORE}/test_transactions.py::test_what_fails_half_way_is_undone_alone",
    ),
    Mutant(
        "an error at commit is taken for nothing done",
        ("P13",),
        "store/sqlite/lane.py",
        "if undone or isinstance(wrong, (apsw.FullError, apsw.BusyError)):",
        "if wrong:",
        f"{STORE}/test_commits.py::test_an_error_at_commit_that_stays_is_an_unknown_outcome",
    ),
)
