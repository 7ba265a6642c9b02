"""`relet demo`: what it tells holds, and would be told as broken if it did not."""

import json
from contextlib import closing
from http.client import HTTPConnection, RemoteDisconnected

import pytest

from relet.cli.colour import Paint
from relet.cli.demo import play
from relet.cli.demonstration import lost_reply
from relet.cli.demonstration.shop import Shop


@pytest.mark.slow
def test_the_demo_holds_and_takes_the_options_of_every_command(process, folder):
    done = process("--json", "demo")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert all(line["ok"] for line in lines)
    assert [line["orders"] for line in lines if "orders" in line] == [1]
    assert not (folder / "relet.db").exists()


class Generous(Shop):
    """Books each order twice."""

    def __init__(self):
        super().__init__()
        self.orders = Twice()


class Twice(list):
    def append(self, order):
        self += [order, order]


@pytest.mark.slow
def test_a_line_that_does_not_hold_is_told_and_ends_the_demo_with_1(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("relet.cli.demo.Takeover.run", lambda first: first._meanwhile())
    monkeypatch.setattr(lost_reply, "Shop", Generous)
    assert play(f"sqlite:///{tmp_path}/demo.db", as_json=True, paint=Paint(on=False)) == 1
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["ok"], "C (process" in line["text"]) == (False, True)


def ordered(shop, method="POST", path="/orders", key="k"):
    with closing(HTTPConnection("127.0.0.1", shop.port, timeout=10)) as connection:
        connection.request(method, path, '{"item": "paper"}', {"Idempotency-Key": key})
        return json.load(connection.getresponse())


def test_the_shop_loses_its_first_reply_and_counts_every_call_whatever_its_key():
    with Shop().open() as shop:
        shop.reply_lost.set()
        with pytest.raises(RemoteDisconnected):
            ordered(shop)
        assert (len(shop.orders), shop.replies) == (1, 0)
        assert ordered(shop) == {"order": 2, "item": "paper"}
        assert (len(shop.orders), shop.replies) == (2, 1)
        assert ordered(shop, "GET", "/orders/k") == {"order": 1, "item": "paper"}
        assert ordered(shop, "GET", "/orders/other") is None
