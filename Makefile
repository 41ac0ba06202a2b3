# Shortcuts. The environment is what `./run test` made.
PYTHON := .venv/bin/python

.PHONY: help test unit mutants lint format settings figure smoke lock audit

help: # this list
	@echo "make test     all tests                    (./run test)"
	@echo "make unit     the tests without Snakemake  (./run test -m 'not workflow')"
	@echo "make mutants  break the library on purpose, one place at a time; the tests must notice (ONLY=losses: some)"
	@echo "make lint     what a commit must pass"
	@echo "make format   put the code into its form"
	@echo "make settings write the list of settings in config/README.md"
	@echo "make figure   draw docs/labels.svg from config/expected.csv"
	@echo "make smoke    the whole pipeline on a tiny collection, in results/smoke/"
	@echo "make lock     resolve envs/requirements.txt anew (UPGRADE=--upgrade: to the newest versions)"
	@echo "make audit    known advisories about the locked packages"

test:
	./run test

unit:
	./run test -m "not workflow"

mutants:
	$(PYTHON) tests/mutants.py $(ONLY)

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m snakefmt --check Snakefile workflow

format:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
	$(PYTHON) -m snakefmt Snakefile workflow

settings:
	PYTHONPATH=. $(PYTHON) docs/settings.py

figure:
	$(PYTHON) docs/labels.py

smoke:
	./run --configfile config/smoke.yaml

lock:
	UPGRADE="$(UPGRADE)" envs/lock.sh

audit:
	$(PYTHON) -m pip_audit --require-hashes --disable-pip -r envs/lock/run.txt -r envs/lock/torch.txt
