# Every target installs what it needs. You only need Python 3.11 or newer and make.
VENV ?= .venv
BENCH_VENV ?= .venv-bench
PAPERS_VENV ?= .venv-papers
DOCS_VENV ?= .venv-docs
BIN := $(VENV)/bin

# Tests start many processes, which should share their bytecode.
unexport PYTHONDONTWRITEBYTECODE

# Fast tests from every package: no server, browser, subprocesses or long Markov chains.
QUICK := $(addprefix tests/, architecture data golden inference io results simulation \
	cli/test_parsing.py docs/test_completeness.py docs/test_documented.py docs/test_links.py \
	evaluation/test_gold.py evaluation/test_cross_validation.py evaluation/test_explanation.py \
	models/crowd/test_likelihood.py models/crowd/test_mpm_likelihood.py models/crowd/test_estimate.py \
	models/pairwise models/test_list_models.py models/test_reductions.py models/test_settings.py \
	online/test_beliefs.py online/test_elo.py online/test_glicko.py active/test_history.py active/test_stopping.py \
	conformance/test_promises.py::test_is_its_settings conformance/test_promises.py::test_names_every_item)

.PHONY: help demo quick test check lint types results tests test-other-cpu explore bench bench-quick bench-large bench-huge bench-all bench-check calibration papers papers-quick docs docs-serve tutorials package clean

help:
	@echo "make demo         rank the bundled example, print the result and write it to demo-output/"
	@echo "make quick        run linters, type checker and the fast tests, before each commit (within a minute)"
	@echo "make test         run linters, type checker and all tests; rounding-sensitive tests also as on another processor"
	@echo "make explore      run the tests with new and more random examples"
	@echo "make bench        compare the speed with other libraries (installed into $(BENCH_VENV))"
	@echo "make bench-large  rank a hundred million judgments within 4 GB, on one core and on several (2.5 GB of disk)"
	@echo "make bench-huge   rank ten to a thousand million judgments from disk, and a hundred million on four workers (25 GB of disk, hours)"
	@echo "make bench-all    time every model on three real sets: fit and default uncertainty, as ratios (needs CROWDRANK_DATA)"
	@echo "make bench-check  check that nothing has become slower, by ratios within one run"
	@echo "make calibration  count how often intervals and claims hold on simulated crowds (an hour; continues where it stopped)"
	@echo "make papers       reproduce the tables and figures of the papers (four to five hours on two cores)"
	@echo "make docs         build the documentation site strictly into site/VERSION/ and check its links (installed into $(DOCS_VENV))"
	@echo "make docs-serve   serve the site while you edit it, at http://127.0.0.1:8000"
	@echo "make tutorials    run the notebooks in docs/tutorials/ and store their output"
	@echo "make package      build wheel and sdist, install each in a clean environment and run the README from it"
	@echo "make clean        remove the environments, caches and demo-output/"

$(VENV)/.ready: pyproject.toml tools/environment.sh
	tools/environment.sh $(VENV)
	@touch $@

$(VENV)/.ready-test: pyproject.toml tools/environment.sh
	tools/environment.sh $(VENV) test
	@touch $@ $(VENV)/.ready

$(BENCH_VENV)/.ready: pyproject.toml tools/environment.sh
	tools/environment.sh $(BENCH_VENV) bench
	@touch $@

$(PAPERS_VENV)/.ready: pyproject.toml tools/environment.sh
	tools/environment.sh $(PAPERS_VENV) papers
	@touch $@

$(DOCS_VENV)/.ready: pyproject.toml tools/environment.sh
	tools/environment.sh $(DOCS_VENV) docs
	@touch $@

demo: $(VENV)/.ready
	@mkdir -p demo-output
	$(BIN)/crowdrank rank examples/cities/votes.csv --gold examples/cities/gold.csv --out demo-output/ranking.csv

quick: lint types
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(QUICK)

# The type checker runs in parallel with the tests: its first run keeps one core busy for most of a minute.
test: lint
	$(MAKE) --no-print-directory -j 2 types tests
	$(MAKE) --no-print-directory test-other-cpu

check: lint types results

lint: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-test
	$(BIN)/mypy

# List the results under papers/ and benchmarks/ whose models have changed since.
results: $(VENV)/.ready-test
	$(BIN)/python tools/stale_results.py

# worksteal keeps neighbouring tests on one worker, which can reuse their fixtures and compiled loops.
tests: $(VENV)/.ready-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

test-other-cpu: $(VENV)/.ready-test
	$(BIN)/python tools/other_cpu.py $(BIN)/python -m pytest -n auto --dist worksteal -m arithmetic

explore: $(VENV)/.ready-test
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n auto

bench: $(BENCH_VENV)/.ready
	$(BENCH_VENV)/bin/python benchmarks/bradley_terry.py
	$(BENCH_VENV)/bin/python benchmarks/crowd_bt.py
	$(BENCH_VENV)/bin/python benchmarks/online.py
	$(BENCH_VENV)/bin/python benchmarks/growth.py
	$(BENCH_VENV)/bin/python benchmarks/kernels.py
	$(BENCH_VENV)/bin/python benchmarks/questions.py
	$(BENCH_VENV)/bin/python benchmarks/server.py
	$(BENCH_VENV)/bin/python benchmarks/nothing_lost.py --rounds 20

bench-quick: $(BENCH_VENV)/.ready
	$(BENCH_VENV)/bin/python benchmarks/bradley_terry.py --quick
	$(BENCH_VENV)/bin/python benchmarks/crowd_bt.py --quick
	$(BENCH_VENV)/bin/python benchmarks/online.py --quick
	$(BENCH_VENV)/bin/python benchmarks/growth.py --quick
	$(BENCH_VENV)/bin/python benchmarks/questions.py --quick

bench-large: $(BENCH_VENV)/.ready
	$(BENCH_VENV)/bin/python benchmarks/scaling.py
	$(BENCH_VENV)/bin/python benchmarks/large.py

bench-huge: $(BENCH_VENV)/.ready
	$(BENCH_VENV)/bin/python benchmarks/large.py --rows 1e7,1e8,1e9 --models crowd-bt --uncertainty yes --name growth-large
	$(BENCH_VENV)/bin/python benchmarks/scaling.py --rows 1e8 --models crowd-bt --workers 1,2,4 --fits 2 --name scaling-1e8

bench-all: $(BENCH_VENV)/.ready
	OPENBLAS_NUM_THREADS=1 $(BENCH_VENV)/bin/python benchmarks/all_models.py

bench-check: $(BENCH_VENV)/.ready
	$(BENCH_VENV)/bin/python benchmarks/check.py

calibration: $(VENV)/.ready-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/calibration.py

papers: $(PAPERS_VENV)/.ready
	for script in papers/*/*.py; do $(PAPERS_VENV)/bin/python $$script || exit 1; done
	$(PAPERS_VENV)/bin/python tools/stale_results.py --strict papers/*/results

papers-quick: $(PAPERS_VENV)/.ready
	for script in papers/*/*.py; do $(PAPERS_VENV)/bin/python $$script --quick || exit 1; done

docs: $(DOCS_VENV)/.ready
	$(DOCS_VENV)/bin/python tools/build_site.py $(if $(VERSION),--version $(VERSION))

docs-serve: $(DOCS_VENV)/.ready
	$(DOCS_VENV)/bin/python tools/build_site.py --serve

tutorials: $(VENV)/.ready-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/notebooks.py

package:
	$${PYTHON:-python3} tools/check_package.py

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(PAPERS_VENV) $(DOCS_VENV) site demo-output .numba-other-cpu .pytest_cache .mypy_cache .ruff_cache .hypothesis
