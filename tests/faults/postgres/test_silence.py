"""A way to the server falls silent: connections stay open and nobody answers. Work goes on by another way."""

import pytest

from tests.cut_connection import Proxy
from tests.faults.postgres.judge import judge
from tests.faults.postgres.load import Load
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.faults, pytest.mark.slow]
RECOVERY_S = 20.0
"""A call gives up after ten seconds, a new connection by the dead way after two."""


@pytest.mark.case("PG-03")
def test_workers_on_a_dead_way_go_on_by_another(start, tmp_path, told):
    with PostgresServer(tcp=True) as server, Proxy(server) as dying, Proxy(server) as living:
        ports = f"127.0.0.1:{dying.port},127.0.0.1:{living.port}"
        url = f"postgresql://postgres@{ports}/postgres?connect_timeout=2"
        with Load(url, start, tmp_path) as load:
            load.flow()
            load.struck()
            dying.black_hole()
            load.flow()
            # Whatever was on its way arrives now, after all, from clients that are long gone on.
            dying.pass_on()
            load.flow()
            story = load.finish()
            told(story)
            judge(story, server.url(), load.db)
    assert story.recovered_s < RECOVERY_S
