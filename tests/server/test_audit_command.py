"""`relet audit` at a service: the log of the key's own tenant, page by page, for whoever has the scope."""

import json

import pytest

from relet.cli.exits import Exit
from relet.cli.main import run
from relet.core import limits
from relet.core.access import Role
from relet.core.rules.audit import Act, AddAudit
from tests.server.keys import made_key
from tests.server.reached import reached


@pytest.fixture
def reach(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with reached(f"sqlite:///{tmp_path / 'work.db'}") as reach:
        acts = [
            Act(key_id="k", key_name="ann", tenant=tenant, operation="cancel", outcome="ok", target=f"t-{n}")
            for n, tenant in enumerate(["acme", "other"] * 4)
        ]
        reach.home.backend.operate(AddAudit(acts=acts))
        yield reach


@pytest.fixture
def audit(reach, monkeypatch, capsys):
    def call(*options, role=Role.ADMIN):
        monkeypatch.setenv("RELET_API_KEY", made_key(reach.home.backend, role, "acme"))
        capsys.readouterr()
        return run(["audit", "--url", reach.url, *options]), *capsys.readouterr()

    return call


def test_the_lines_of_the_keys_tenant_are_told_and_no_others(audit, monkeypatch):
    monkeypatch.setattr(limits, "PAGE_ITEMS_MAX", 3)
    code, out, _ = audit("--json", "--operation", "cancel")
    assert (code, [line["target"] for line in json.loads(out)["lines"]]) == (Exit.OK, ["t-6", "t-4", "t-2", "t-0"])
    _, out, _ = audit("--json", "--after", "1", "--limit", "2")
    assert [line["target"] for line in json.loads(out)["lines"]] == ["t-2", "t-4"]
    _, out, _ = audit("--json", "--after", "1", "--before", "6")
    assert [line["target"] for line in json.loads(out)["lines"]] == ["t-2", "t-4"]


def test_without_the_scope_it_is_refused_with_the_way_to_it(audit):
    code, _, err = audit(role=Role.OPERATOR)
    assert (code, "needs the scope audit" in err) == (Exit.FORBIDDEN, True)


@pytest.mark.parametrize("options", [("--verify",), ("--prune", "--older", "60d")])
def test_it_is_checked_and_pruned_where_the_store_is(audit, options):
    code, _, err = audit(*options)
    assert code == Exit.USAGE
    assert "shows its log and does nothing else with it" in err and "--url sqlite:///work.db" in err
