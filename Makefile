# Everything here works on a machine with Python 3.11 and make. Each target makes the .venv it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help install demo test check bench generate format clean

help: ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "flowrt needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

install: $(READY) ## Make the virtual environment

demo: $(READY) ## Two turns of a real chat flow; no key, no network
	$(BIN)/python samples/demo.py

test: check ## Everything that guards the project
	$(BIN)/flowrt test samples
# Three on two cores: some wait for leases of killed processes to run out, and leave a core free.
	$(BIN)/python -m pytest --numprocesses 3 --dist worksteal

check: $(READY) ## Lint, types, import rules, generated files
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m flowrt.cli.generate --check

bench: $(READY) ## The measured promises, as JSON lines
	@for script in turn threads memory startup expressions engine suite sdk cost histories search serve; do \
		$(BIN)/python -m bench.$$script || exit 1; done

generate: $(READY) ## Write the generated files anew
	$(BIN)/python -m flowrt.cli.generate

format: $(READY) ## Format the code
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --fix --quiet .

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
