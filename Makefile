# make demo      the full pipeline on the built-in sample wiki, ends in runs/demo/report.html
# make test      every fast test          make test-all   the slow ones too
# make check     lint and types           make format     mend what can be mended
# make test-gpu  what only a GPU can show
# make package   an archive for machines without the internet, in dist/
# Set-up happens by itself in .venv and is done again only when pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE := $(VENV)/.package
TOOLS := $(VENV)/.tools
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TESTS ?= tests

.PHONY: setup demo test test-all test-gpu check format package

setup: $(TOOLS)

# torch comes first and alone: pip then takes a CPU wheel where one is offered to it (PIP_FIND_LINKS, find-links,
# an extra index) and the index's own build where none is, and no later step replaces it.
$(PACKAGE): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("bertwright needs Python 3.11 or newer, not " + sys.version.split()[0] + "; try make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) "$$(grep '^torch==' constraints.txt)"
	$(INSTALL) --constraint constraints.txt --editable '.[hf]'
	touch $@

# What the tests need beside: other programs' formats, clouds and schedulers, for them to be asked.
$(TOOLS): $(PACKAGE)
	$(INSTALL) --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(PACKAGE)
	$(BIN)/bertwright run recipes/demo.toml --out runs/demo

test: $(TOOLS)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not gpu" $(TESTS)

test-all: $(TOOLS)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not gpu" $(TESTS)

# Without set-up and network, for a machine that is lent: by $(VENV) if it is there, else by PYTHON, which needs torch
# for CUDA, numpy, pydantic, safetensors and pytest.
test-gpu:
	PYTHONPATH=src $(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) -m pytest -m gpu tests/gpu

package: $(PACKAGE)
	$(BIN)/python -m tools.package

check: $(TOOLS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(TOOLS)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
