# make demo      the full pipeline on the built-in sample wiki, ends in runs/demo/report.html
# make test      every fast test          make test-all   the slow ones too
# make test-fast the rules and the tests without processes, before each push
# make check     lint and types           make format     mend what can be mended
# make bytecode  what all processes of a first `make test` would compile, each for itself
# make test-gpu  what only a GPU can show
# make ort-env   an environment beside it that trains by ONNX Runtime (.venv-ort)       make test-ort  what it can show
# make test-deepspeed  the engine that needs DeepSpeed, in an environment over .venv (.venv-deepspeed)
# make test-transformers4  exported models in transformers 4.57, in another such environment (.venv-transformers4)
# make test-tensorflow  TensorFlow's checkpoints as TensorFlow writes them, in another (.venv-tensorflow)
# make docs      the documents as a site, in dist/docs           make docs-serve  shows it on this machine
# make package   an archive for machines without the internet, in dist/
# Set-up happens by itself in .venv and is done again only when pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE := $(VENV)/.package
TOOLS := $(VENV)/.tools
# Without bytecode of every module at once: torch has thousands, of which a program imports a part.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
TESTS ?= tests
# Two more than a small machine has cores, because tests wait for processes, and others compute meanwhile.
PROCESSES ?= 4

ORT := .venv-ort
ORT_PYTHON ?= python3.11
ORT_PACKAGES := $(ORT)/.packages
ORT_EXTENSION := $(ORT)/.extension

LLAMA_CPP := $(VENV)/llama.cpp
NODE_PACKAGES := tools/node/node_modules/.packages

DEEPSPEED := .venv-deepspeed
DEEPSPEED_PACKAGES := $(DEEPSPEED)/.packages

TRANSFORMERS4 := .venv-transformers4
TRANSFORMERS4_PACKAGES := $(TRANSFORMERS4)/.packages

TENSORFLOW := .venv-tensorflow
TENSORFLOW_PACKAGES := $(TENSORFLOW)/.packages

.PHONY: setup programs demo test test-fast test-all test-gpu ort-env test-ort test-deepspeed test-transformers4 test-tensorflow bytecode check format docs docs-serve package

setup: programs

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

# Without the scripts of the packages, one of which downloads libraries for GPUs. Half of what is installed are the
# libraries of other systems.
$(NODE_PACKAGES): tools/node/package-lock.json
	cd tools/node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	cd $(@D)/onnxruntime-node/bin/napi-v* && \
	find . -mindepth 2 -maxdepth 2 ! -path "./$$(node -p 'process.platform + "/" + process.arch')" -exec rm -r {} +
	touch $@

# What tests of other programs need that pip does not install.
programs: $(TOOLS)
	$(MAKE) $(LLAMA_CPP) || echo "the tests of llama.cpp are skipped: its converter cannot be downloaded here, as said above"
	$(MAKE) $(NODE_PACKAGES) || echo "the tests of transformers.js are skipped: npm cannot install it here, as said above"

demo: $(PACKAGE)
	$(BIN)/bertwright run recipes/demo.toml --out runs/demo

# tests/runtimes loads libraries of other programs, which change the process that they are in, so it has its own.
# Files go to the processes in their order: by number of tests, the files with few but slow ones would come last, and
# the other processes would wait for one.
test: programs
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder --ignore tests/runtimes -m "not slow and not gpu" $(TESTS)
	$(if $(filter tests,$(TESTS)),$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not gpu" tests/runtimes)

# Collecting tests imports all that they import; what cannot be collected, `make test` says.
bytecode: programs
	$(BIN)/python -m pytest --collect-only --ignore tests/runtimes $(TESTS) > /dev/null || true

# No process of its own is started by these, so two of pytest keep two cores busy.
test-fast: $(TOOLS)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not gpu and not heavy" tests/rules tests/fidelity tests/unit

test-all: programs
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder --ignore tests/runtimes -m "not gpu" $(TESTS)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not gpu" tests/runtimes
	if command -v $(ORT_PYTHON) > /dev/null; then $(MAKE) test-ort; else echo "test-ort is skipped: it needs $(ORT_PYTHON)"; fi
	if $(MAKE) $(DEEPSPEED_PACKAGES); then $(MAKE) test-deepspeed; else echo "test-deepspeed is skipped: DeepSpeed cannot be installed here, as said above"; fi
	$(MAKE) test-transformers4
	$(MAKE) test-tensorflow

# llama.cpp's converter to GGUF is in no wheel, but with the sources in this package: 77 MB, of which 2 are kept.
$(LLAMA_CPP): constraints.txt | $(PACKAGE)
	rm -rf $@ $@.new
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-python --constraint constraints.txt --dest $@.new llama-cpp-python
	cd $@.new && root=$$(basename *.tar.gz .tar.gz)/vendor/llama.cpp && \
	tar xzf *.tar.gz --strip-components 3 $$root/conversion $$root/gguf-py $$root/convert_hf_to_gguf.py && rm *.tar.gz
	mv $@.new $@
	touch $@

ort-env: $(ORT_EXTENSION)

# In the order in which each needs the other. The package goes in without its requirements, which ask for a newer torch.
$(ORT_PACKAGES): tools/ort/requirements.txt
	$(ORT_PYTHON) -c 'import sys; sys.exit("ONNX Runtime that trains needs Python 3.11, not " + sys.version.split()[0] + "; try make ort-env ORT_PYTHON=/path/to/python3.11") if sys.version_info[:2] != (3, 11) else None'
	$(ORT_PYTHON) -m venv --clear $(ORT)
	$(ORT)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	$(ORT)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# Three minutes of a processor. Without code for debuggers, which takes gcc several times as long; ninja is in its bin.
$(ORT_EXTENSION): $(ORT_PACKAGES)
	PATH="$(CURDIR)/$(ORT)/bin:$$PATH" CFLAGS="-O0 -g0" $(ORT)/bin/python -m onnxruntime.training.ortmodule.torch_cpp_extensions.install
	touch $@

# Warnings are errors with the versions of constraints.txt; these are older ones.
test-ort: $(ORT_EXTENSION)
	$(ORT)/bin/python -m pytest -W default tests/ort

# The environment sees all that is in $(VENV), and has DeepSpeed beside: its package is built when it is installed, by the
# torch that it will run with.
$(DEEPSPEED_PACKAGES): $(TOOLS)
	$(BIN)/python -m venv --clear --without-pip $(DEEPSPEED)
	sites='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	echo "import site; site.addsitedir('$$($(BIN)/python -c "$$sites")')" > "$$($(DEEPSPEED)/bin/python -c "$$sites")/usual.pth"
	$(DEEPSPEED)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --constraint constraints.txt deepspeed
	touch $@

test-deepspeed: $(DEEPSPEED_PACKAGES)
	$(DEEPSPEED)/bin/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder -m deepspeed tests/contract tests/pipeline

# What version 5 replaced goes over what is in $(VENV), without requirements, which are there.
$(TRANSFORMERS4_PACKAGES): tools/transformers4/requirements.txt $(TOOLS)
	$(BIN)/python -m venv --clear --without-pip $(TRANSFORMERS4)
	sites='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	echo "import site; site.addsitedir('$$($(BIN)/python -c "$$sites")')" > "$$($(TRANSFORMERS4)/bin/python -c "$$sites")/usual.pth"
	$(TRANSFORMERS4)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --requirement $<
	touch $@

# Warnings are errors with the versions of constraints.txt; these are older ones.
test-transformers4: $(TRANSFORMERS4_PACKAGES)
	$(TRANSFORMERS4)/bin/python -c 'import transformers; assert transformers.__version__.startswith("4."), transformers'
	$(TRANSFORMERS4)/bin/python -m pytest -W default tests/unit/export/test_export.py tests/unit/export/test_families.py tests/unit/export/test_hugging_face.py tests/unit/export/test_verify.py

# Without requirements, which are in $(VENV) in other versions or are not needed. 274 MB, of which a quarter, headers for
# programs in C++, is removed again.
$(TENSORFLOW_PACKAGES): tools/tensorflow/requirements.txt $(TOOLS)
	$(BIN)/python -m venv --clear --without-pip $(TENSORFLOW)
	sites='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	echo "import site; site.addsitedir('$$($(BIN)/python -c "$$sites")')" > "$$($(TENSORFLOW)/bin/python -c "$$sites")/usual.pth"
	$(TENSORFLOW)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --requirement $<
	rm -r "$$($(TENSORFLOW)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"/tensorflow/include
	touch $@

test-tensorflow: $(TENSORFLOW_PACKAGES)
	$(BIN)/python -m pytest tests/unit/model/test_tensorflow_programs.py

# Without set-up and network, for a machine that is lent: by $(VENV) if it is there, else by PYTHON, which needs torch
# for CUDA, numpy, pydantic, safetensors and pytest.
test-gpu:
	PYTHONPATH=src $(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) -m pytest -m gpu tests/gpu

package: $(PACKAGE)
	$(BIN)/python -m tools.package

docs: $(TOOLS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "open $(CURDIR)/dist/docs/index.html"

docs-serve: $(TOOLS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --dev-addr 127.0.0.1:8000

check: $(TOOLS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(TOOLS)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
