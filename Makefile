# make test     what every change must pass        make test-long   everything, with the long stress tests
# make demo     the main job in one command        make bench       figures against the published package
# make lint     ruff, mypy --strict                make dist        sdist and wheels, tested outside the source tree
# make conformance    the public MCP conformance suite: client scenarios, and server scenarios through the gateway
# make fuzz     every fuzz target for FUZZ_SECONDS (60), or FUZZ_TARGETS="forms store" only; needs clang
# make mutation how many small changes of the source the tests notice
# make docs     the documents as a site, in build/docs    make docs-links    are links to other machines good
# make platforms    the suite in a Debian 13 (root, debootstrap)    make freethreaded    the suite on Python 3.14 and 3.14t
# make clean    removes what these made
#
# Needs python3 (3.10+) with venv, its headers and a C compiler; says what is missing. All else goes into .venv by pip.
# PYTHON=python3.12 make test   takes another interpreter.  VENV=folder   puts the environment elsewhere.
# JOBS=1 make test              runs that many tests at a time (default: one for each processor, at most four).
PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help system build test test-long demo bench conformance lint fuzz mutation dist platforms freethreaded clean docs docs-links

bin := $(VENV)/bin
pip := $(bin)/python -m pip --disable-pip-version-check -qq
# On Linux x86-64 the vendor's library can be had, so there its tests fail rather than skip.
native := $(shell [ "$$(uname -sm)" = "Linux x86_64" ] && echo 1 || echo 0)
# Most tests wait more than they compute. A file stays together, as its tests share a server. JOBS=0: one process.
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); [ $$n -gt 4 ] && n=4; echo $$n)
run_tests = GOPHER_MCP_REQUIRE_NATIVE=$${GOPHER_MCP_REQUIRE_NATIVE:-$(native)} \
	$(bin)/python -m pytest -n $(JOBS) --dist loadfile
# A run of its own: pytest-qt changes what every test of a run sees (sys.excepthook).
run_qt_tests = QT_QPA_PLATFORM=offscreen $(bin)/python -m pytest -n $(JOBS) --dist loadfile -p pytestqt.plugin -q tests/qt

# Archives of one commit are the same bytes wherever they are built.
epoch = SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || date +%s)}

help:
	@sed -n -e 's/^# \{0,1\}//p' -e '/^PYTHON/q' Makefile

system:
	@tests/support/system.sh "$(PYTHON)"

# The environment with everything that tests, types and benchmarks need; made again when the requirements change.
$(VENV)/.ready: pyproject.toml | system
	@echo "== environment $(VENV)"
	@[ -x $(bin)/python ] || $(PYTHON) -m venv $(VENV)
	@$(pip) install --upgrade pip
	@$(bin)/python tests/support/requirements.py test dev > $(VENV)/requirements.txt
	@$(pip) install cmake ninja -r $(VENV)/requirements.txt
	@touch $@

# The C parts with warnings as errors, installed as a user would install them (not editable): tests see what is shipped.
build: $(VENV)/.ready
	@echo "== build and install"
	@$(pip) install --no-build-isolation --no-deps --force-reinstall -C cmake.define.GOPHER_WERROR=ON .

test: build
	@echo "== tests of the dialog"
	@$(run_qt_tests) $(QT_ARGS)
	@echo "== tests"
	@$(run_tests) --ignore=tests/qt $(PYTEST_ARGS)

test-long: build
	@echo "== tests, the long ones too"
	@$(run_qt_tests) --long $(QT_ARGS)
	@HYPOTHESIS_PROFILE=long $(run_tests) --ignore=tests/qt --long $(PYTEST_ARGS)

demo: build
	@$(bin)/python -m gopher_mcp_python demo

# Results and plots in build/benchmarks; BENCH_ARGS="callback threads" measures those alone, --quick with few rounds.
# BENCH_ARGS=--page measures nothing, and makes docs/benchmarks.md of what was measured.
BENCH_ARGS ?=
bench: build
	@echo "== benchmarks"
	@$(bin)/python -m benchmarks $(BENCH_ARGS)

conformance: build
	@echo "== conformance"
	@$(bin)/python -m tests.conformance
	@$(bin)/python -m tests.conformance.gateway

lint: build
	@echo "== lint"
	@$(bin)/ruff check .
	@$(bin)/mypy

FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
fuzz: build
	@$(pip) install 'atheris>=3' || echo "== atheris has no wheel for this Python"
	@echo "== fuzzing"
	@$(bin)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)

MUTATION_ARGS ?=
mutation: build
	@$(pip) install 'coverage>=7.6'
	@echo "== mutation testing"
	@$(bin)/python -m tests.mutation $(MUTATION_ARGS)

# Its requirements are installed when they are missing, and are no part of the tests' environment otherwise.
docs: build
	@echo "== docs"
	@$(bin)/python tests/support/requirements.py docs > $(VENV)/docs.txt && $(pip) install -r $(VENV)/docs.txt
	@cd docs && $(abspath $(bin))/python -m sphinx -q -W --keep-going -E -j auto -b html . ../build/docs
	@$(bin)/python -m tests.support.examples
	@echo "build/docs/index.html"

# What leads to other machines; no part of any test.
docs-links: docs
	@cd docs && $(abspath $(bin))/python -m sphinx -q -b linkcheck . ../build/docs-links

dist: $(VENV)/.ready
	@echo "== sdist, and a wheel for each Python here"
	@export PATH="$(abspath $(bin)):$$PATH" PYTHONPATH="$(CURDIR)/src" $(epoch) && \
		$(bin)/python -m tests.support.wheels dist "$(PYTHON)"
	@tests/support/outside.sh "$(PYTHON)" dist $(bin)/mypy $(PYTEST_ARGS)

platforms:
	@tests/support/distributions/debian13.sh build/debian13 $(PYTEST_ARGS)

freethreaded:
	@tests/support/distributions/freethreaded.sh build/python3.14

clean:
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis src/gopher_mcp_python/ffi/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
