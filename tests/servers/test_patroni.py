"""A Patroni cluster: whichever way its leader is lost, another one leads, with every commit that was acknowledged."""

import contextlib
import getpass
import os
from pathlib import Path

import psycopg
import pytest

from tests.patroni import PatroniCluster
from tests.servers.at_work import at_work_in
from tests.waiting import eventually

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def cluster():
    with PatroniCluster() as cluster:
        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (it int)")
        yield cluster
    for server in (cluster.etcd, *cluster.nodes):
        assert at_work_in(server.folder) == []
        assert not server.folder.exists()


@pytest.mark.parametrize("how", ["kill_leader", "cut_off_leader", "freeze_leader"])
def test_another_node_leads_and_has_what_was_acknowledged(cluster, how):
    cluster.wait_until_whole()
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("INSERT INTO kept VALUES (7)")
        before = connection.execute("SELECT count(*) FROM kept").fetchone()
    lost = getattr(cluster, how)()
    found = cluster.wait_for_new_leader(lost)
    assert found is cluster.leader()
    assert found is not lost
    if how == "cut_off_leader":
        assert not lost.takes_writes()
    with psycopg.connect(cluster.url()) as connection:
        assert connection.info.port == found.port
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == before
    cluster.heal(lost)
    eventually(lambda: lost.is_running and not lost.takes_writes(), 60)
    cluster.wait_until_whole()
    assert cluster.leader() is found


def test_it_is_nobody_who_runs_it(cluster):
    owners = []
    for server in (cluster.etcd, *cluster.nodes):
        for pid in at_work_in(server.folder):
            with contextlib.suppress(FileNotFoundError):
                owners.append(Path(f"/proc/{pid}").owner())
    assert len(owners) > 4 * len(cluster.nodes)
    assert set(owners) == ({getpass.getuser()} if os.geteuid() else {"nobody"})
