"""Mutants of what stands beside a process and watches it: silence, proofs of death, wardens, children, sidecars."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import STORE, Mutant

APART: Final = "tests/processes/test_apart.py"
AHEAD: Final = "tests/worker/test_ahead.py"
CHILDREN: Final = "tests/processes/test_children.py"
DEATH: Final = "tests/processes/test_death.py"
SIDECAR: Final = "tests/processes/test_sidecar.py"
SILENCE: Final = "tests/worker/test_silence.py"

PROCESSES: Final = (
    Mutant(
        "silence keeps nobody from renewing",
        ("P12",),
        "client/silence.py",
        "return self.so_far_ms >= self._allowed_ms",
        "return False",
        f"{SILENCE}::test_p12_a_hung_handler_loses_its_lease_which_counts_and_is_said",
    ),
    Mutant(
        "the process beside renews whatever is silent",
        ("P12",),
        "beating.py",
        "if one.silence_ms is None or now_ms - one.moved_ms < one.silence_ms]",
        "]",
        f"{SIDECAR}::test_p12_work_that_holds_the_gil_and_moves_nothing_is_let_go_of",
    ),
    Mutant(
        "a move that nobody was told of is counted as silence elsewhere",
        ("long work",),
        "client/silence.py",
        "self._allowed_ms = self.told_most_ms if elsewhere else most_ms",
        "self._allowed_ms = most_ms",
        f"{SILENCE}::test_p12_moves_that_nobody_was_told_of_end_no_lease_elsewhere",
    ),
    Mutant(
        "a freed lock proves nothing",
        ("P9",),
        "store/sqlite/bonds.py",
        "return Proof.DEAD if lock(",
        "return Proof.LIVES if lock(",
        f"{DEATH}::test_a_killed_workers_task_is_taken_over_at_once_and_everybody_is_told_why",
    ),
    Mutant(
        "a lock that is held proves a death",
        ("P3",),
        "store/sqlite/bonds.py",
        "alone=False) else Proof.LIVES",
        "alone=False) else Proof.DEAD",
        f"{DEATH}::test_a_stopped_holder_is_not_dead",
    ),
    Mutant(
        "a lock in another file is believed",
        ("P3",),
        "store/sqlite/bonds.py",
        "if os.fstat(self._open[row.lock]).st_ino != row.inode:",
        "if os.fstat(self._open[row.lock]).st_ino < 0:",
        f"{DEATH}::test_a_lock_file_that_is_gone_or_another_one_proves_nothing",
    ),
    Mutant(
        "a lock of another boot is believed",
        ("P3",),
        "store/sqlite/bonds.py",
        "        if row.boot_id != self.boot_id:\n            return Proof.NOTHING\n",
        "",
        f"{DEATH}::test_a_lock_of_another_boot_proves_nothing",
    ),
    Mutant(
        "a lock that no row names is answered the next time",
        ("P9",),
        "store/sqlite/death.py",
        "            bonds.unmake()  # no row",
        "            pass  # no row",
        f"{DEATH}::test_a_lock_that_no_row_could_be_written_for_is_let_go_of_and_the_next_one_is_named",
    ),
    Mutant(
        "a warden sees the end of its pipe only, which a fork of the worker holds",
        ("P9",),
        "worker/group_killer.py",
        "is_dead = is_dead or death in ready or os.getppid() != writer",
        "is_dead = False",
        f"{DEATH}::test_a_fork_in_the_workers_group_holds_neither_its_warden_nor_its_lock",
    ),
    Mutant(
        "a killed warden is not replaced",
        ("P6",),
        "worker/warden.py",
        "                if self._closed:\n                    return\n                is_started",
        "                if self._groups:\n                    return\n                is_started",
        f"{DEATH}::test_a_killed_warden_is_replaced",
    ),
    Mutant(
        "a warden of a shared group kills others too",
        ("attempts",),
        "worker/group_killer.py",
        'return mark in file.read().split(b"\\0")',
        "return bool(mark)",
        f"{DEATH}::test_of_a_group_that_a_worker_shares_only_what_it_has_started_ends_with_it",
    ),
    Mutant(
        "a child is stopped for whatever lease ends",
        ("attempts",),
        "worker/children.py",
        "            if self._lease is not lease:\n                return\n",
        "",
        f"{CHILDREN}::test_a_run_that_is_over_stops_neither_its_idle_child_nor_the_next_run_there",
    ),
    Mutant(
        "a child that does not stop is left alone",
        ("P6",),
        "worker/children.py",
        "        killing.start()\n",
        "",
        f"{APART}::test_a_cancelled_handler_that_does_not_listen_is_killed_with_its_children",
    ),
    Mutant(
        "whatever a child's process says is of the task that runs there",
        ("P2",),
        "worker/children.py",
        " or word.token != lease.token:",
        ":",
        f"{CHILDREN}::test_words_under_another_lease_than_the_one_that_a_child_works_under_are_not_heard",
    ),
    Mutant(
        "a child that cannot tell its end waits for the next task",
        ("P9",),
        "worker/apart.py",
        "if not line.say(finished):",
        "if line.say(finished) is None:",
        f"{CHILDREN}::test_a_handler_that_closes_all_descriptors_ends_its_attempt_and_is_told_so",
    ),
    Mutant(
        "who is held off by the limit of shares alone asks for the lock",
        ("rest",),
        "core/rules/glance.py",
        "return not await are_all_full(tx, row, kinds), None",
        "return True, None",
        "tests/core/test_glance.py::"
        "test_ready_tasks_whose_shares_are_all_at_their_limit_are_waited_for_until_a_lease_ends",
    ),
    Mutant(
        "the end of a child is the end of its line, which a fork of it holds",
        ("P9",),
        "worker/children.py",
        "        self._ended(0)\n        self.kill()\n        self.line.hang_up()\n",
        "        self._ended(0)\n",
        f"{CHILDREN}::test_a_child_that_dies_ends_its_attempt_though_its_forks_live_on",
    ),
    Mutant(
        "the lease of a handler that could not be started is kept",
        ("P9",),
        "worker/worker.py",
        "            self._hand_in.give_back(lease)\n            self._lookout.back_off",
        "            self._lookout.back_off",
        f"{CHILDREN}::test_a_child_that_cannot_be_started_costs_its_task_no_attempt_and_the_worker_goes_on",
    ),
    Mutant(
        "what was granted beside results that could not be told is dropped",
        ("attempts",),
        "worker/handin.py",
        "            if not (grants := asked.result()):\n                raise\n",
        "            raise\n",
        f"{AHEAD}::test_what_was_granted_is_worked_on_though_the_results_beside_it_could_not_be_told",
    ),
    Mutant(
        "who cannot tell results is given more to do",
        ("attempts",),
        "worker/handin.py",
        "if results and ask is not None and is_first:",
        "if results and ask is not None:",
        f"{AHEAD}::test_who_cannot_tell_results_gets_no_more_to_do",
    ),
    Mutant(
        "the sidecar of a stopped worker renews on",
        ("P9",),
        "beating.py",
        "if not moving or not self._parent.runs():",
        "if not moving:",
        f"{SIDECAR}::test_a_stopped_workers_sidecar_is_silent",
    ),
    Mutant(
        "what a full pipe did not take counts as told",
        ("long work",),
        "client/beside/sidecar.py",
        'return process.stdin.write(msgspec.json.encode(words) + b"\\n") is not None',
        'return process.stdin.write(msgspec.json.encode(words) + b"\\n") != 0',
        f"{SIDECAR}::test_a_sidecar_whose_pipe_was_full_is_told_later_all_that_is_true_by_then",
    ),
    Mutant(
        "who finds the gate taken goes in",
        ("fairness",),
        "store/sqlite/gate.py",
        "        return False\n    return True\n\n\ndef open_gate",
        "        return True\n    return True\n\n\ndef open_gate",
        f"{STORE}/test_gate.py::test_who_finds_it_taken_waits_for_its_turn",
    ),
    Mutant(
        "the gate is kept after a transaction",
        ("fairness",),
        "store/sqlite/gate.py",
        "            fcntl.flock(self._descriptor, fcntl.LOCK_UN)\n",
        "            pass\n",
        f"{STORE}/test_gate.py::test_an_error_in_the_transaction_leaves_the_gate",
    ),
)
