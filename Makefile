# `make demo` shows what chunkwright does on a real volume; `make test` runs every test. Both set up .venv first.

.DEFAULT_GOAL := help
.PHONY: help demo test test-own test-doctest test-zarr test-latest planted-faults differential fuzz lint format types imports docstrings supported docs bench rust check clean setup
SHELL := bash

BIN := .venv/bin
PY := $(BIN)/python
WORKERS ?= 2
EXAMPLES ?= 2000
N ?= 300000
SEED ?= 0
RELEASE ?= newest
PACKAGES := chunkwright chunkwright_numcodecs chunkwright_rust chunkwright_store chunkwright_zarr
CARGO := CARGO_TARGET_DIR=$(CURDIR)/target PYO3_PYTHON=$(CURDIR)/$(PY) cargo

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## Make .venv with everything that tests need
	@bash tools/setup.sh test

demo: ## Read and write a real volume under every pipeline, compare, and print times
	@bash tools/setup.sh demo
	$(PY) examples/demo.py

test: test-own test-doctest test-zarr ## Run our tests, the doctests, and zarr's own tests under our pipeline

test-own: setup ## Run our tests, with branch coverage of the core
	$(PY) -m pytest -n $(WORKERS) --dist worksteal --durations 10 --cov --cov-report=term tests

test-doctest: setup ## Run the examples in docstrings
	$(PY) -m pytest --doctest-modules --pyargs $(PACKAGES)

test-zarr: setup ## Run all of zarr's own tests under our pipeline, with each backend
	$(PY) tools/zarr_suite.py --workers $(WORKERS) --backend numcodecs
	$(PY) tools/zarr_suite.py --workers $(WORKERS) --backend rust

test-latest: setup ## The same with the newest zarr 3 on PyPI, or with RELEASE, in an environment of its own
	$(PY) tools/zarr_suite.py --workers $(WORKERS) --release $(RELEASE) --backend numcodecs
	$(PY) tools/zarr_suite.py --workers $(WORKERS) --release $(RELEASE) --backend rust

differential: setup ## Compare with NumPy and zarr on many more random arrays (EXAMPLES of each test)
	CHUNKWRIGHT_EXAMPLES=$(EXAMPLES) $(PY) -m pytest -o faulthandler_timeout=0 -n $(WORKERS) tests/differential

planted-faults: setup ## Plant faults in a copy of the sources and see that tests fail (ARGS=--rust for those in Rust too)
	$(PY) -m tools.planted_faults --workers $(WORKERS) $(ARGS)

fuzz: setup ## Feed damaged chunks to each backend (N of them, SEED, BACKEND)
	$(PY) -m tools.fuzz --inputs $(N) --seed $(SEED) $(addprefix --backend ,$(BACKEND))

lint: setup ## Check style and spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell

format: setup ## Format Python and Rust
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(CARGO) fmt --all

types: setup ## Check types, and the stub of the native module
	$(BIN)/mypy
	$(PY) -m mypy.stubtest chunkwright_rust._native

imports: setup ## Check who may import whom
	$(BIN)/lint-imports

docstrings: setup ## Check the docstrings of public names
	$(PY) tools/check_docstrings.py $(PACKAGES)

supported: setup ## Make the tables of docs/supported.md, by trying every codec and data type
	$(PY) -m tools.supported

docs: setup ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: ## Measure against other readers and writers of zarr; ARGS=--help lists what can be chosen
	@bash tools/setup.sh bench
	$(PY) -m benches $(ARGS)

rust: setup ## Check format, lints and tests of the Rust member
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings
	$(CARGO) test --release --locked

check: lint types imports docstrings docs rust test planted-faults ## Run everything that CI runs

clean: ## Remove what the other targets made
	rm -rf .venv .work target site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo.png
	rm -f adapters/rust/python/chunkwright_rust/_native*.so
