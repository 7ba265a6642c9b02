"""What no relet has written into a row is told with the row; what our own code has wrong is not called damage."""

import apsw
import pytest

import relet
from relet.core.errors import Unavailable
from relet.core.model import Instants, State
from relet.core.tx import QueueRow, TaskRow
from relet.server.answers import problem
from relet.store.rows import event_of, key_of, queue_of, task_of, view_of
from relet.store.unreadable import gone

AT = Instants(0, 0)
KEY = ("id", "digest", "name", "a", "viewer", "[]", None, 0, None, None, None)
EVENT = (1, "t", "q", "submitted", "ready", None, None, 0, "{}")
UNHELD = ("1", None, None, None, None, None, None)


def with_column(row, place, value):
    return (*row[:place], value, *row[place + 1 :])


def task_row(**columns):
    row = dict.fromkeys(TaskRow.__struct_fields__, 0) | {"id": "t", "state": "ready", "labels": None, "result": None}
    return tuple((row | columns).values())


def queue_row(**columns):
    row = dict.fromkeys(QueueRow.__struct_fields__) | {"tenant": "a", "name": "q", "paused": 0}
    return tuple((row | columns).values())


DAMAGED = [
    *[(key_of, with_column(KEY, place, 1 << 62), "key 'id'") for place in (7, 8, 9, 10)],
    *[(key_of, with_column(KEY, place, "odd"), "key 'id'") for place in (4, 5, 6)],
    (event_of, with_column(EVENT, 3, "odd"), "event 1"),
    (event_of, with_column(EVENT, 8, "{"), "event 1"),
    (task_of, task_row(state="odd"), "task 't'"),
    *[
        (queue_of, queue_row(rate=rate, rate_ms=ms), "queue 'q'")
        for rate, ms in ((1, None), (None, 1), (0, 1), (1, 0))
    ],
    (lambda row: view_of((*UNHELD, *row), AT), task_row(state=str(State.LEASED)), "task 't'"),
]


@pytest.mark.parametrize(("read", "row", "name"), DAMAGED)
def test_a_value_without_meaning_is_told_with_its_row_and_for_good(read, row, name):
    with pytest.raises(Unavailable, match=f"^{name}: its row holds what is not .* → relet verify") as told:
        read(row)
    assert (told.value.code, told.value.retryable) == ("RELET-DAMAGED", False)


@pytest.mark.parametrize("read", [key_of, queue_of, task_of, event_of, lambda row: view_of(row, AT)])
@pytest.mark.parametrize("row", [("a", "b"), tuple("x" * 60)])
def test_columns_that_the_code_does_not_expect_are_no_damage(read, row):
    if read is event_of and len(row) > 2:
        row = (*EVENT[:7], "no number", "{}")
    with pytest.raises((TypeError, IndexError)):
        read(row)


def test_damage_is_answered_without_a_word_of_asking_again():
    assert "Retry-After" not in problem(gone("task", 7)).headers
    assert problem(Unavailable("away")).headers["Retry-After"] == "1"


def test_text_that_is_no_utf_8_is_told_as_damage_and_others_are_answered(tmp_path):
    with relet.connect(f"sqlite:///{tmp_path}/relet.db") as db:
        bad, good = db.submit("q", None), db.submit("r", None)
        connection = apsw.Connection(f"{tmp_path}/relet.db")
        connection.execute("UPDATE tasks SET kind = cast(x'ff' AS TEXT) WHERE id = ?", (bad.id,))
        connection.close()
        for ask in (lambda: db.task(bad.id), lambda: db.claim("q", ttl=60), db.backend.verify):
            with pytest.raises(Unavailable, match="no UTF-8") as caught:
                ask()
            assert (caught.value.code, caught.value.retryable) == ("RELET-DAMAGED", False)
        assert db.claim("r", ttl=60).task_id == good.id
