"""Fixtures of the tests with processes, whose programs are at a service; the test itself is at the store."""

import pytest

import relet
from relet.core.access import Role
from tests.processes.fixtures import actor, outside, start, steered
from tests.processes.service import ServiceProcess
from tests.processes.steering import SERVICE
from tests.server.beside import Services

__all__ = ["actor", "outside", "start", "steered"]


@pytest.fixture
def database():
    """The store is in a file."""


@pytest.fixture
def db(tmp_path):
    with relet.connect(f"sqlite:///{tmp_path / 'work.db'}", holder="test") as client:
        yield client


@pytest.fixture
def service(start, db, monkeypatch):
    """In a process of its own, and all programs have a key for it."""
    service = ServiceProcess(start, db)
    monkeypatch.setenv("RELET_API_KEY", service.key(Role.ADMIN))
    return service


@pytest.fixture
def url(service):
    return service.url


@pytest.fixture(autouse=True)
def services(tmp_path, monkeypatch):
    """For programs on the clock of the test's folder."""
    with Services(tmp_path.parent) as services:
        monkeypatch.setenv(SERVICE, f"{services.url}/{tmp_path.name}")
        yield services
