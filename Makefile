# Every target sets up what it needs; `make` alone lists them.

PY := .venv/bin/python
SAY = echo "relet: $(1)" >&2

# A folder that holds no test yet is named and passed over. One that does must pass: pytest's "nothing ran" is a failure.
has_tests = $(wildcard $(1)/test_*.py $(1)/*/test_*.py)
run_tests = $(if $(call has_tests,$(1)),$(call SAY,$(1)) && $(2),$(call SAY,$(1): no tests yet))
PARALLEL = -n auto --dist worksteal

# `check` leaves out tests marked slow; nothing but `faults`, `browser` and `postgres` runs those marked so.
MARK = not faults and not browser and not postgres
check: MARK = not faults and not browser and not postgres and not slow

.PHONY: help demo check rules test postgres servers uses mutants faults failovers soak browser chromium bench bench-peers docs pages lint architecture core conformance fmt venv clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1 /p' Makefile | while read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

demo: .venv/.base  ## watch a lease lapse, be taken over, and its old holder refused (real processes)
	@.venv/bin/relet demo

check: lint architecture core conformance  ## under 2 minutes: format, lint, types, imports, sizes, core, conformance
	@$(call SAY,check passed)

test: lint core  ## under 12 minutes: check, and every other test that needs no system package
	@$(call SAY,all other tests) && $(PY) -m pytest tests --ignore=tests/core --ignore=tests/faults -m "$(MARK)" $(PARALLEL)
	@$(call SAY,test passed)

faults: .venv/.dev  ## real processes killed, frozen and cut off
	@for tool in faketime strace curl jq; do command -v $$tool >/dev/null || \
		$(call SAY,$$tool is missing and some tests need it: sudo apt-get install -y $$tool); done
	@$(call run_tests,tests/faults,$(PY) -m pytest tests/faults --ignore=tests/faults/postgres \
		-m "faults$(if $(QUICK), and not long)" $(PARALLEL))
	@$(if $(QUICK),,$(PY) -m pytest tests/faults/postgres -m faults)

failovers: .venv/.dev  ## PostgreSQL servers killed, cut off, promoted and set to another time, under load; Patroni too
	@$(PY) -m pytest tests/faults/postgres $(if $(QUICK),,tests/store_postgres) -m "faults$(if $(QUICK), and not slow)"

soak: .venv/.dev  ## half an hour of work under kills and stops (make soak MINUTES=30 RATE=50 ROUTE=file|http)
	@$(PY) -m tests.soak --minutes $(or $(MINUTES),30) --rate $(or $(RATE),50) --route $(or $(ROUTE),file)

postgres: .venv/.dev  ## the second engine: the same suites over servers of its own (all kinds: MATRIX=all, fewest: quick)
	@RELET_TEST_MATRIX=$(MATRIX) $(PY) -m pytest tests --ignore=tests/servers $(PARALLEL) \
		-m "postgres and not faults and not browser$(if $(filter quick,$(MATRIX)), and not slow)"

servers: .venv/.dev  ## the servers of the tests, each tried for itself: 15, 18, PgBouncer, replicas, Patroni
	@$(PY) -m pytest tests/servers $(PARALLEL)

uses: .venv/.dev  ## the larger examples, killed at every point of their work
	@$(call run_tests,tests/uses,$(PY) -m pytest tests/uses -m "not browser" $(PARALLEL))

browser: .venv/.dev chromium  ## the browser agent killed at every moment, in a real Chromium
	@$(PY) -m pytest tests/uses tests/integrations tests/postgres_suites -m browser $(PARALLEL)

chromium:  ## install the browser that `make browser` needs (Debian and Ubuntu, as root)
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null; } || { \
		$(call SAY,chromium is missing: sudo apt-get install -y --no-install-recommends chromium); exit 1; }
	@command -v chromium >/dev/null || { $(call SAY,installing chromium) && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

bench: .venv/.base  ## measure (more: make bench ARGS=--help)
	@$(if $(wildcard bench/__main__.py),$(PY) -m bench $(ARGS),$(call SAY,bench: no programs yet))

bench-peers: .venv/.base .venv/.peers/.made  ## the same worker beside other durable queues
	@$(PY) -m bench --only B4,B11 --peers-python .venv/.peers/bin/python $(ARGS)

.venv/.peers/.made: pyproject.toml
	@$(call SAY,installing the peers apart) && $(PY) -m venv .venv/.peers && \
		.venv/.peers/bin/python -m pip install --quiet --disable-pip-version-check '.[bench-peers]' && touch $@

mutants: .venv/.dev  ## break the code on purpose, and see the named tests notice
	@$(PY) -m tests.mutants

docs: pages  ## build the docs, and run their code
	@$(call run_tests,tests/docs,$(PY) -m pytest tests/docs $(PARALLEL))

pages: .venv/.dev  ## build the docs; warnings are errors
	@$(call SAY,docs: build) && .venv/bin/sphinx-build -q -W --keep-going -n -b html docs docs/_build/html
	@$(call SAY,docs are in docs/_build/html/index.html)

lint: .venv/.dev  ## format, lint, types and import contracts
	@$(call SAY,format) && .venv/bin/ruff format --quiet --check .
	@$(call SAY,lint) && .venv/bin/ruff check --quiet .
	@$(call SAY,types) && .venv/bin/mypy --no-error-summary
	@$(call SAY,imports) && .venv/bin/lint-imports --no-logo >.venv/imports.log || { cat .venv/imports.log; exit 1; }

RULES = tests/architecture/rules
SEMGREP = .venv/.rules/bin/semgrep scan --metrics off --disable-version-check --no-git-ignore
rules: .venv/.rules/.made  ## no stored data becomes code, and no SQL is put together
	@$(call SAY,rules) && { $(SEMGREP) --test $(RULES) && \
		$(SEMGREP) --error --config $(RULES) src examples bench; } >.venv/rules.log 2>&1 || { cat .venv/rules.log; exit 1; }

.venv/.rules/.made: pyproject.toml .venv/.base
	@$(call SAY,installing the reader of the rules apart) && $(PY) -m venv .venv/.rules && \
		.venv/.rules/bin/python -m pip install --quiet --disable-pip-version-check '.[rules]' && touch $@

architecture: .venv/.dev  ## sizes, names, and what an import loads
	@$(call run_tests,tests/architecture,$(PY) -m pytest tests/architecture -m "$(MARK)")

core: .venv/.dev  ## the rules, with every branch of core covered
	@$(call run_tests,tests/core,$(PY) -m coverage run -m pytest tests/core -m "$(MARK)" && $(PY) -m coverage report)

conformance: .venv/.dev  ## the one suite that every engine and client must pass
	@$(call run_tests,tests/conformance,$(PY) -m pytest tests/conformance -m "$(MARK)" $(PARALLEL))

fmt: .venv/.dev  ## format, and mend what the linter can mend
	@.venv/bin/ruff format --quiet . && .venv/bin/ruff check --quiet --fix .

venv: .venv/.dev  ## .venv with relet and all tools

clean:  ## remove .venv and everything made here
	rm -rf .venv .coverage .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache docs/_build build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.base: pyproject.toml .ci/venv
	@sh .ci/venv

.venv/.dev: pyproject.toml .ci/venv
	@sh .ci/venv dev
