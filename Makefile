# `make` lists the targets. Everything runs in .venv, which the first target that needs it makes.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help example test check format lint types coverage wheel bench test-pythons live acp-clients clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

example: $(READY) ## run every example against an embedded gateway: no key, no network
	@set -e; for file in examples/*.py; do echo; echo "=== $$file"; $(BIN)/python $$file </dev/null; done

test: $(READY) ## run the tests
	$(BIN)/python -m pytest -q

check: $(READY) lint types coverage example wheel ## all that CI checks

format: $(READY) ## format the code and sort imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

coverage: $(READY)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

wheel: $(READY) ## install the wheel in a fresh environment and import every module
	PYTHON=$(PYTHON) ./.ci/wheel

bench: $(READY) ## measure against hand-written loops, in the same run
	$(BIN)/python -m tests.bench

test-pythons: ## run the tests on every Python from 3.10 on that this machine has
	./.ci/test-pythons

live: $(READY) ## opt-in: real clients and servers that nobody here wrote (needs ../shared and the package registry)
	./.ci/live

acp-clients: $(READY) ## opt-in: editors' protocol libraries against the real agent (needs ../shared and the registries)
	./.ci/acp-clients

clean: ## remove the environment and what tools left behind
	rm -rf .venv .venv-* build dist *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
