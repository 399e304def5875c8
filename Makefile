# One door: what a newcomer types and what CI runs. `make help` lists it.
PYTHON ?= python3
CONFIG ?= configs/demo.yaml
OUT ?= runs/$(notdir $(basename $(CONFIG)))
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest
WORKERS ?= 2

.PHONY: help env certify test older threads elsewhere corpus corpus-all corpus-write check lint types imports docs notebooks site slow browser gpu proofs bench mutants release clean

help:
	@echo "make certify [CONFIG=configs/adult.yaml]  train with DP-SGD and certify it"
	@echo "make test    the whole default suite"
	@echo "make elsewhere  the same under two other instruction sets and with four threads"
	@echo "make corpus  what the doors answer beside what they answered before: corpus-all, corpus-write"
	@echo "make check   tests, lint, types, import rules, documentation, corpus: what CI runs"
	@echo "make slow    the longer experiments' tests, by name"
	@echo "make browser the pages in headless Chromium"
	@echo "make gpu     tests that need a GPU, and what reticent costs there"
	@echo "make notebooks  run the notebooks and keep their outputs"
	@echo "make site    the documentation as a site: docs/_build/html"
	@echo "make bench   measure all and keep the rows that the site shows"
	@echo "make release what is missing for a release"
	@echo "make proofs  theorems that Coq checks, and what each takes for granted: nothing"
	@echo "make mutants planted bugs in error terms: which tests see them"

env: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(READY)

certify: $(READY)
	$(BIN)/reticent certify $(CONFIG) --out $(OUT)

test: $(READY)
	$(PYTEST) -n $(WORKERS) --dist loadscope

# What numpy, its BLAS and torch do on processors of 2008 and of 2013; on the second with four threads. A feature that
# this processor lacks is a warning of numpy.
OF_2008 := NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4" OPENBLAS_CORETYPE=Nehalem ATEN_CPU_CAPABILITY=default
OF_2013 := NPY_DISABLE_CPU_FEATURES="X86_V4" OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=avx2
ELSEWHERE := -n $(WORKERS) --dist loadscope -W default::ImportWarning

older: $(READY)
	$(OF_2008) $(PYTEST) $(ELSEWHERE)

threads: $(READY)
	$(OF_2013) $(subst OMP_NUM_THREADS=1,OMP_NUM_THREADS=4,$(PYTEST)) $(ELSEWHERE)

elsewhere: older threads

CORPUS := OMP_NUM_THREADS=1 $(BIN)/python -m tests.corpus

corpus: $(READY)
	$(CORPUS)

corpus-all: $(READY)
	$(CORPUS) --all

corpus-write: $(READY)
	$(CORPUS) --write

check: lint types imports test docs corpus

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

docs: $(READY)
	$(PYTEST) -m docs -n $(WORKERS) --dist loadscope

notebooks: $(READY)
	$(BIN)/python docs/notebooks/make.py

site: $(READY)
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

slow: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[hf,lightning]"
	$(PYTEST) -m slow --timeout 3600

browser: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[browser]"
	$(PYTEST) -m browser -rs

gpu: $(READY)
	$(PYTEST) -m gpu -rs
	$(BIN)/python -m benchmarks.gpu

bench: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[bench]"
	$(BIN)/python -m benchmarks.page

proofs:
	$(PYTHON) proofs/check.py

mutants: $(READY)
	$(BIN)/python tests/mutants/run.py

release: $(READY)
	$(BIN)/python docs/development/release.py --check

clean:
	rm -rf $(VENV) build dist
