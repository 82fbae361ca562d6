# make test     what every change must pass        make test-long   everything, with the long stress tests
# make demo     the main job in one command        make bench       figures against the published package
# make lint     ruff, mypy --strict                make dist        sdist and wheel, tested outside the source tree
# make conformance    the public MCP conformance suite: client scenarios, and server scenarios through the gateway
# make clean    removes what these made
#
# Needs python3 (3.10+) with venv, its headers and a C compiler; says what is missing. All else goes into .venv by pip.
# PYTHON=python3.12 make test   takes another interpreter.  VENV=folder   puts the environment elsewhere.
# JOBS=1 make test              runs that many tests at a time (default: one for each processor, at most four).
PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help system build test test-long demo bench conformance lint dist clean

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

bench: build
	@$(bin)/python -m benchmarks

conformance: build
	@echo "== conformance"
	@$(bin)/python -m tests.conformance
	@$(bin)/python -m tests.conformance.gateway

lint: build
	@echo "== lint"
	@$(bin)/ruff check .
	@$(bin)/mypy

dist: $(VENV)/.ready
	@echo "== sdist and wheel"
	@rm -rf dist && $(bin)/python -m build --outdir dist . > build-dist.log 2>&1 || { tail -50 build-dist.log; exit 1; }
	@rm -f build-dist.log && ls -l dist
	@tests/support/outside.sh "$(PYTHON)" dist $(PYTEST_ARGS)

clean:
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis src/gopher_mcp_python/ffi/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
