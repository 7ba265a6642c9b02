"""What the pages show of the code is what the code is, and nothing public goes without a page."""

import re

import pytest

import relet
from docs.generator import api, commands, failures, interface, maxima, operations, settings, states
from docs.generator.pages import DOCS, END, filled, pages, problems
from docs.generator.parts import all_parts
from relet.cli.menu import COMMANDS
from relet.core.catalog import OPERATIONS
from relet.core.states import diagram

UPDATE = "out of date: .venv/bin/python -m docs.generate"


@pytest.fixture(scope="module")
def parts():
    return all_parts()


@pytest.fixture(scope="module")
def texts():
    return {path: path.read_text(encoding="utf-8") for path in pages()}


def test_every_part_has_one_place_and_every_place_a_part(parts, texts):
    assert problems(texts, parts) == []


def test_every_part_shows_what_the_code_says_now(parts, texts):
    stale = [str(path.relative_to(DOCS)) for path, text in texts.items() if filled(text, parts) != text]
    assert stale == [], UPDATE


@pytest.mark.parametrize("beside", [interface, settings], ids=lambda one: one.FILE.name)
def test_what_stands_beside_the_pages_is_committed_as_it_is_now(beside):
    assert beside.FILE.read_text(encoding="utf-8") == beside.text(), UPDATE


def test_every_operation_is_told(parts):
    assert {f"operation {one.name}" for one in OPERATIONS} <= parts.keys()


def test_every_command_is_told(parts):
    assert {f"command {one.name}" for one in COMMANDS} <= parts.keys()


@pytest.mark.parametrize("name", relet.__all__)
def test_every_public_name_stands_in_the_reference(name, texts):
    reference = "".join(text for path, text in texts.items() if path.parent.name == "reference")
    heads = rf"^### (?:testing\.)?{name}(?: class| fields)?$"
    assert re.search(heads, reference, re.MULTILINE) or f"`{name}`" in reference or f"`relet.{name}`" in reference


def test_the_drawing_of_the_states_has_every_move_of_the_table():
    drawn = states.svg(diagram())
    assert drawn.count("marker-end") == len(states.LINES)
    with pytest.raises(LookupError, match="differ"):
        states.svg(f"{diagram()}\n    done --> ready: undone")


def test_the_page_of_concepts_holds_the_diagram_of_the_table():
    text = (DOCS / "concepts.md").read_text(encoding="utf-8")
    assert [found["text"].strip() for found in states.MERMAID.finditer(text)] == [diagram()]


def test_a_part_that_is_stale_lost_or_doubled_is_found(tmp_path):
    page = tmp_path / "page.md"
    region = f"<!-- generated: one -->\nold\n{END}\n"
    assert problems({page: region}, {"one": "new"}) == []
    assert filled(region, {"one": "new"}) != region
    assert problems({page: region}, {}) == ["a page asks for the part 'one', which the code has not"]
    assert problems({page: ""}, {"one": "new"}) == ["nothing in docs/ has a place for the part 'one'"]
    assert problems({page: region * 2}, {"one": "new"}) == ["the part 'one' stands in 2 places"]
    assert problems({page: region.replace(END, "")}, {})[0].endswith(END)


def test_a_limit_a_code_and_a_field_without_a_line_are_found(monkeypatch):
    monkeypatch.setattr("relet.core.limits.NEW_MAX", 7, raising=False)
    with pytest.raises(LookupError, match="NEW_MAX"):
        maxima.parts()
    monkeypatch.delitem(failures.CODES, "RELET-BUSY")
    with pytest.raises(LookupError, match="RELET-BUSY"):
        failures.parts()
    monkeypatch.delitem(operations.fields_of.__globals__["MEANINGS"], "priority")
    with pytest.raises(LookupError, match="priority"):
        operations.parts()


def test_a_public_name_without_a_docstring_is_found(monkeypatch):
    monkeypatch.setattr(relet.Client.claim, "__doc__", None)
    with pytest.raises(LookupError, match="no docstring"):
        api.parts()


def test_the_settings_are_told_with_their_variables(parts):
    assert all(one.variable in parts["settings"] for one in commands.SETTINGS)


def test_every_flag_of_a_setting_is_one_that_some_command_has(parts):
    told = set(re.findall(r"`(--[\w-]+)`", parts["settings"]))
    own = {option for text in parts.values() for option in re.findall(r"^\| `(--[\w-]+)", text, re.MULTILINE)}
    assert "--tenant" in told and told - own == set()
    assert [one.name for one in commands.SETTINGS if not one.has_flag] == ["redact_env"]
