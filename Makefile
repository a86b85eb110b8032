# Each target does its own set-up: a virtual environment in .venv, the kernel built, all installed.
# PYTHON names the interpreter (3.11 or later).

PYTHON ?= python3
CORPUS ?=
VENV := .venv
BIN := $(VENV)/bin
KERNEL := $(shell find wordpiece_core/kernel -name '*.rs' -o -name 'Cargo.*' | grep -v /target/)

.PHONY: demo test lint bench clean

demo: $(VENV)/.installed
	$(BIN)/python -m pipelines.demo out/demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --maxprocesses 4

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd wordpiece_core/kernel && cargo fmt --check
	cd wordpiece_core/kernel && cargo clippy --locked --all-targets -- -D warnings
	cd wordpiece_core/kernel && cargo test --locked --release

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks $(CORPUS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) out wordpiece_core/kernel/target wordpiece_core/_kernel*.so
