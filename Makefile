# make play    the app, on http://127.0.0.1:8501, without what learns, tests and measures elsewhere
# make run     the app with all that it can do
# make setup   a virtual environment with everything pinned in requirements.txt, and the native modules
# make test    ruff, mypy and the tests, less those of make thorough
# make thorough  the tests that see what make test saw on more kernels, targets and seeds, or from further away
# make soak    the tests that both play a sample of: every lesson in the browser, every move of every line dropped
# make prove SECONDS=600   random legal walks, each position judged by the exact oracle, for as long as asked
# make mutate  switches off each legality condition by itself: the tests or the oracle must notice; docs/mutation.md
# make perft   counts of lines of legal moves beside their goldens; GOLDENS=--update-goldens writes these anew
# make arm64   the tests that need no browser as 64-bit Arm runs them, in qemu (Debian; hours): TESTS=tests/test_text.py
# make fuzz SECONDS=600    damaged texts at every door that reads one
# make bench   the 16 kernels against other libraries and the machine's limits: build/bench.html (forty minutes; idle machine)
# make recordings  what the tour and Watch replay, measured anew; needs PyTorch
# make benchmark  the core's speed, candidates a second, softmax against PyTorch (nothing else should run)
# make benchmark-app SOAK=5000  the app in a real Chromium: response times, idle load, double clicks, tabs, memory
# make screens   every page and state, light and dark, as pictures in build/screens
# make studies  the studies of the Dojo as pages (build/studies), two as Markdown too (docs/); TIMED=--no-moves takes times first
# make looks   what a machine can tell of their look, at five widths, light and dark, at 100, 200 and 400% (build/looks; goes on)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .venv-bench
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
PINS := requirements.txt requirements-cuda.txt
BUILT := pyproject.toml CMakeLists.txt $(wildcard native/*.txt native/*.pyi native/src/*)

SECONDS ?= 600
SOAK ?= 5000

# make bench: rounds of a kernel, which kernels, which baselines.
# READY: seconds that a baseline has to be ready; TVM_SECONDS: that its tuner has of them.
ROUNDS ?= 5
KERNELS ?= --all
AGAINST ?= --against all
READY ?= 240
TVM_SECONDS ?= 60

.PHONY: setup play run test thorough soak recordings prove perft arm64 fuzz bench benchmark mutate benchmark-app screens studies looks
.DELETE_ON_ERROR:

setup: $(VENV)/.requirements $(VENV)/.project

$(BIN)/python:
	@{ command -v g++ || command -v clang++; } >/dev/null && { command -v gcc || command -v clang; } >/dev/null || \
	  { echo "The Dojo compiles C: install gcc and g++ first (Debian: apt-get install g++)."; exit 1; }
	$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Install Python's venv first (Debian: apt-get install python3-venv)."; exit 1; }

# The stamps make a second start quick; each step runs again when what it installs has changed. make run after
# make play adds what is missing, and make play after make run finds all there.
$(VENV)/.requirements: $(PINS) | $(BIN)/python
	$(PIP) -r requirements.txt
	@touch $@ $(VENV)/.needs

# What plays: of requirements.txt, which is more than that, the versions alone. Not compiled to bytecode, a third
# of the time, but where it is imported.
$(VENV)/.needs: $(PINS) pyproject.toml | $(VENV)/.build
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > $@.txt
	$(PIP) --no-compile --constraint requirements.txt -r $@.txt
	@touch $@

$(VENV)/.build: $(PINS) | $(BIN)/python
	$(PIP) --constraint requirements.txt cmake ninja pybind11 scikit-build-core
	@touch $@

$(VENV)/.project: $(BUILT) | $(VENV)/.build
	$(PIP) --no-build-isolation --no-deps --config-settings=build-dir=build/native --editable .
	@touch $@

# Both at once: the native modules take as long to compile as what plays takes to come.
play: | $(BIN)/python
	@$(MAKE) --no-print-directory -j2 $(VENV)/.needs $(VENV)/.project
	$(BIN)/dojo app

run: setup
	$(BIN)/dojo app

# Hundreds of processes start: what they import is compiled once, even where a shell says that nothing be kept.
test thorough soak mutate: export PYTHONDONTWRITEBYTECODE =

# Types are checked beside the tests, with what these leave of the processors and a little more: not after them.
test: setup
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	@mkdir -p build; nice -n 10 $(BIN)/python -m tests.typed >build/mypy.txt 2>&1 & types=$$!; \
	  $(BIN)/python -m pytest -m 'not soak and not thorough'; tested=$$?; wait $$types; typed=$$?; cat build/mypy.txt; exit $$((tested | typed))

thorough: setup
	$(BIN)/python -m pytest -m 'thorough and not soak'

soak: setup
	$(BIN)/python -m pytest -m soak

# The app stays light: what it is compared with lies in an environment of its own.
$(BENCH_VENV)/.requirements: requirements-bench.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip --disable-pip-version-check install --quiet -r requirements-bench.txt
	@touch $@

bench: setup $(BENCH_VENV)/.requirements
	@mkdir -p build
	DOJO_TVM_LOGS=$(CURDIR)/build/tvm DOJO_TVM_SECONDS=$(TVM_SECONDS) $(BIN)/dojo bench $(KERNELS) $(AGAINST) \
	  --start --heuristic --record --rounds $(ROUNDS) --ready-within $(READY) \
	  --notes docs/bench/notes.txt --json build/bench.json --html build/bench.html

benchmark: setup
	@mkdir -p build
	$(BIN)/python -m pytest benchmarks -n 0 --benchmark-enable --benchmark-columns=min,median,rounds
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.rates
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.scale
	$(BIN)/dojo bench softmax --against torch --json build/softmax-bench.json

recordings: setup
	$(BIN)/python -m agents.jobs.record

benchmark-app: setup
	@mkdir -p build
	$(BIN)/python -m benchmarks.app --soak $(SOAK) --json build/app.json

screens: setup
	$(BIN)/python -m tests.screens build/screens

# Each study as a page, those of EXPORTED as Markdown in docs/ besides. Times come from beside the studies: TIMED, such
# as "--most 8" or "--no-moves", takes this machine's anew first (idle machine). Cycles of a model are the same anywhere.
STUDIES := $(basename $(notdir $(wildcard dojo_core/studies/*.md)))
EXPORTED := softmax matmul
MODELLED := snitch-dot what-an-agent-found

studies: setup
	@mkdir -p build/studies
	$(if $(TIMED),for name in $(filter-out $(MODELLED),$(STUDIES)); do $(BIN)/dojo study time $$name $(TIMED) || exit 1; done)
	for name in $(EXPORTED); do $(BIN)/dojo study export $$name --to docs/$$name.md || exit 1; done
	for name in $(STUDIES); do $(BIN)/dojo study build $$name --to build/studies/$$name.html || exit 1; done

looks: setup
	$(BIN)/python -m tests.screens build/looks --looks --resume --home build/looks-home

prove: setup
	$(BIN)/python -m tests.prove $(SECONDS) $(SEED)

perft: setup
	$(BIN)/python -m pytest tests/perft.py $(GOLDENS)

arm64: setup
	$(BIN)/python -m tests.arm64 $(TESTS)

fuzz: setup
	$(BIN)/python -m tests.fuzz $(SECONDS) $(SEED)

mutate: setup
	$(BIN)/python -m tests.mutate --jobs 2 --write docs/mutation.md
