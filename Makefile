# Two commands: `make run` sets everything up and runs the demo; `make test` checks everything.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

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
	$(INSTALL) --editable ".[search,neural,judges,board,dev]"
	touch .venv/installed $@

.venv/installed-bench: .venv/installed-dev benchmarks/requirements.txt
	$(INSTALL) --requirement benchmarks/requirements.txt
	touch $@
