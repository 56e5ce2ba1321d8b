# make demo      the whole road on the built-in sample wiki, ends in runs/demo/report.html
# make test      every fast test          make test-all   the slow ones too
# make check     lint and types           make format     mend what can be mended
# Set-up happens by itself in .venv and is done again only when pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
TESTS ?= tests

.PHONY: setup demo test test-all test-gpu check format

setup: $(STAMP)

# torch comes first and alone: pip then takes a CPU wheel where one is offered to it (PIP_FIND_LINKS, find-links,
# an extra index) and the index's own build where none is, and no later step replaces it.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("bertwright needs Python 3.11 or newer, not " + sys.version.split()[0] + "; try make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/bertwright run recipes/demo.toml --out runs/demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not gpu" $(TESTS)

test-all: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not gpu" $(TESTS)

test-gpu: $(STAMP)
	$(BIN)/python -m pytest -m gpu $(TESTS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
