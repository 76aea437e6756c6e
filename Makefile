# make demo   train, compare and draw on real data, in under two minutes
# make test   all tests
# make check  format, lint, types, layers
# make bench  time and memory of every loss beside torch's cross-entropy

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check format bench clean

demo: .venv/demo
	$(BIN)/confide demo

test: .venv/dev
	$(BIN)/python -m pytest

check: .venv/dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: .venv/dev
	$(BIN)/python benchmarks/losses.py

.venv/demo: pyproject.toml constraints.txt | .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[cli,plots]'
	touch $@

.venv/dev: pyproject.toml constraints.txt | .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ .venv/demo

.venv:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache
