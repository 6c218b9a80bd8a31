# Everything runs in an environment of its own, .venv, made with nothing but `python3 -m venv`.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
MINUTES ?= 10
STATIC ?= 20000
PLAIN  ?= 10000
SEED   ?= 0
PAIRS  ?= 5000
PROGRAMS ?= 50000
CALLS ?= 20000
GPUS ?= h100,l4
COMPAT ?=
BEFORE ?= HEAD
TORCH  ?= torch==2.13.0+cpu

bin    := $(VENV)/bin
# What tries random programs in JOBS processes, from SEED on.
campaign := $(bin)/python -m tests.campaign
more   = --jobs $(JOBS) --seed $(SEED)
# Each worker takes tests that stand together, which share what a file computes once.
workers := -n $(JOBS) --dist worksteal
# Where jax and PyTorch go: a name by which what lies there is known as installed.
SITE   := $(VENV)/interop/site-packages
# What strangers can send, damage or hand over.
ATTACKS := $(addprefix tests/,artefacts/test_admission.py artefacts/test_deployment_server.py \
  artefacts/test_trust.py caching checker/test_hostile_inputs.py checker/test_strangers.py \
  xla/test_long_programs.py)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help demo docs gallery playground test lint types mypy pyright unit without-bytecode interop gpu gpu-ahead compat fuzz attack identity differential replay bench bench-calls bench-first bench-quick bench-numpy bench-torch bench-check format clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Check the examples and the standard library, then train a model on real data.
	$(bin)/pscdsl check examples stdlib
	$(bin)/python examples/logistic_regression.py

docs: $(VENV)/.docs playground ## Build the documentation site into site/.
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(bin)/python -m mkdocs --quiet build --strict

playground: $(VENV)/pyvenv.cfg ## Build the site's page in which programs are checked, where npm is.
	@$(bin)/python docs/_site/playground/build.py $(VENV)/playground || \
	  echo "There is no playground: the site says so, and its tests are skipped."

gallery: $(VENV)/.bench ## Draw the results of the examples, for the site of `make gallery docs`.
	$(bin)/python -m docs._site.gallery $(VENV)/gallery

test: ## Everything that must pass before a change is merged, and how long each part took.
	+@.ci/timed lint mypy+unit interop

lint: $(VENV)/.test ## Style and formatting.
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/lint-imports --no-cache

types: mypy pyright ## Both type checkers, in their strict modes.

mypy: $(VENV)/.test ## The type checker that keeps what it found, and is in `make test`.
	$(bin)/mypy

pyright: $(VENV)/.test ## The other one, which starts anew each time.
	$(bin)/pyright --pythonpath $(bin)/python

unit: $(VENV)/.test ## The test suite.
	$(bin)/python -m pytest -q $(workers)

without-bytecode: $(VENV)/.test ## The tests of what is read from files, where Python writes no bytecode.
	PYTHONDONTWRITEBYTECODE=1 $(bin)/python -m pytest -q $(workers) tests/kernels/test_identity.py tests/caching

interop: $(VENV)/.interop ## The tests beside jax and PyTorch, which see them; the others do not.
	PYTHONPATH=$(SITE) $(bin)/python -m pytest -q $(workers) tests/interop

gpu: $(VENV)/.gpu-run ## The tests, examples and benchmarks on a GPU of this machine, if it has one.
	$(bin)/python -m tests.on_gpu

gpu-ahead: $(VENV)/.gpu ## Compile every kernel for GPUs that are not here: GPUS=h100,l4.
	PYTHONPATH=$(abspath $(VENV)/gpu) $(bin)/python -m pytest -q tests/targets/gpu tests/cli/test_compile_for_gpu.py
	PYTHONPATH=$(abspath $(VENV)/gpu) $(bin)/python -m tests.compile_ahead --gpus $(GPUS) --jobs $(JOBS)

compat: | $(VENV)/pyvenv.cfg ## The tests with the oldest Python and jaxlib, the newest, and those between: COMPAT=--make.
	$(bin)/python -m tests.compat --folder $(VENV)/compat --jobs $(JOBS) $(COMPAT)

fuzz: $(VENV)/.test ## Random programs, mutants, all cases of all tests: MINUTES=10 STATIC=20000 PLAIN=10000 SEED=0.
	$(campaign) programs --minutes $(MINUTES) $(more)
	$(campaign) static --programs $(STATIC) $(more)
	$(campaign) numpy --programs $(PLAIN) --xla 50 $(more)
	$(campaign) numpy --programs $(PLAIN) --shared $(more)
	$(campaign) numpy --programs $(PLAIN) --grammar writes $(more)
	$(campaign) numpy --programs $(PLAIN) --grammar containers $(more)
	$(campaign) numpy --programs $(PLAIN) --grammar counters $(more)
	$(campaign) numpy --programs $(PLAIN) --grammar dtypes $(more)
	$(campaign) artefacts --programs $(STATIC) $(more)
	SHARE=1 $(bin)/python -m pytest -q $(workers)

attack: $(VENV)/.test ## Hostile files, artefacts, caches, requests and long programs: STATIC=20000 SEED=0.
	SHARE=1 $(bin)/python -m pytest -q $(workers) $(ATTACKS)
	$(campaign) artefacts --programs $(STATIC) $(more)
	$(campaign) identity --programs 500 $(more)

identity: $(VENV)/.test ## Pairs of programs that differ in one thing, never confused: PAIRS=5000 SEED=0.
	$(campaign) identity --programs $(PAIRS) $(more)

differential: $(VENV)/.test ## Random programs beside NumPy, in bounds of rounding: PROGRAMS=50000 SEED=0.
	$(campaign) differential --programs $(PROGRAMS) $(more)

replay: $(VENV)/.test ## The calls of NumPy's and SciPy's own tests, as kernels: CALLS=20000 SEED=0.
	$(campaign) replay --programs $(CALLS) $(more)

bench: $(VENV)/.bench ## Benchmarks, side by side with the tracing compiler.
	$(bin)/python -m benchmarks

bench-calls: $(VENV)/.bench ## Calls of small kernels in sixty forms, beside jax.jit.
	$(bin)/python -m benchmarks.dispatch

bench-first: $(VENV)/.bench ## From the start of a process to the first result, beside jax.
	$(bin)/python -m benchmarks.first

bench-quick: $(VENV)/.test ## The working tree beside a revision, in minutes: BEFORE=HEAD.
	$(bin)/python -m benchmarks.quick $(BEFORE)

bench-numpy: $(VENV)/.bench ## Plain NumPy programs as kernels, beside NumPy, Numba and jax.jit.
	$(bin)/python -m benchmarks.plain_numpy

bench-torch: $(VENV)/.bench-torch ## Those benchmarks that are written for PyTorch too, beside torch.compile.
	PYTHONPATH=$(VENV)/torch $(bin)/python -m benchmarks torch

bench-check: $(VENV)/.test ## Check projects of 200, 1,000 and 5,000 kernels, beside mypy, pyright, ty and Pyrefly.
	$(bin)/python -m benchmarks.synthetic

format: $(VENV)/.test ## Rewrite the sources in the project's format.
	$(bin)/ruff check --fix
	$(bin)/ruff format

clean: ## Remove the environment and everything built.
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .pscdsl_cache

# A stamp a set of extras: installed once, and again when the requirements change.
$(VENV)/.demo: extras := examples
$(VENV)/.test: extras := examples,test
$(VENV)/.bench: extras := examples,test,bench
$(VENV)/.docs: extras := docs
$(VENV)/.demo $(VENV)/.test $(VENV)/.bench $(VENV)/.docs: pyproject.toml | $(VENV)/pyvenv.cfg
	$(bin)/python -m pip install -q -e '.[$(extras)]'
	@touch $@

# The jax that goes with the installed jaxlib, and PyTorch, beside the environment and not in it.
# PyTorch is named to the build, because any other version number may bring gigabytes of libraries
# for GPUs.  Where no index that pip knows has it, PIP_EXTRA_INDEX_URL adds PyTorch's own, and TORCH
# names another; its tests are skipped without it.
$(VENV)/.interop: $(VENV)/.test
	$(bin)/python -m pip install -q --no-deps --upgrade --target $(SITE) opt_einsum \
	  "jax==$$($(bin)/python -c 'import jaxlib; print(jaxlib.__version__)')"
	$(bin)/python -m pip install -q --no-deps --upgrade --target $(SITE) "$(TORCH)" || \
	  echo "There is no $(TORCH): the tests with PyTorch are skipped."
	@touch $@

# The compiler for NVIDIA's GPUs, of the version of the installed jaxlib, without their libraries.
$(VENV)/.gpu: $(VENV)/.test
	version=$$($(bin)/python -c 'import jaxlib; print(jaxlib.__version__)'); \
	$(bin)/python -m pip install -q --no-deps --upgrade --target $(VENV)/gpu \
	  "jax-cuda13-pjrt==$$version" "jax-cuda13-plugin==$$version" || \
	  echo "There is no compiler for GPUs: nothing is compiled for them."
	@touch $@

# NVIDIA's libraries are some gigabytes, so they are installed where there is a driver alone.
$(VENV)/.gpu-run: $(VENV)/.bench
	@if command -v nvidia-smi > /dev/null; then \
	  $(bin)/python -m pip install -q "jax-cuda13-plugin[with-cuda]==$$($(bin)/python -c \
	    'import jaxlib; print(jaxlib.__version__)')"; \
	fi

# With all that torch.compile needs, but for a compiler of C++.
$(VENV)/.bench-torch: $(VENV)/.bench
	$(bin)/python -m pip install -q --upgrade --target $(VENV)/torch "$(TORCH)"
	@touch $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "pscdsl needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one: make PYTHON=python3.15 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
