# Inlay's commands. Every target installs what it needs. Rust, Python 3.10+ and make must be there.

PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
BRIDGES := .venv-bridges
BRIDGED := torch paddle jax
BENCH := .venv-bench
BENCHED := inlay torch paddle jax numpy
BIN := $(VENV)/bin

# The base of `make compare`: a git revision, or an existing wheel.
BASE ?= HEAD
BASE_WHEEL ?=
NEW_WHEEL ?=
BASE_DIST = $(BENCH)/dist/$(shell git rev-parse --verify --short=12 '$(BASE)^{commit}')

comma := ,
space := $(subst ,, )
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name '*.wgsl' -o -name Cargo.toml)
# Everything that is optional.
FEATURES := $(subst $(space),$(comma),$(addprefix inlay-tensor/,gpu serde ndarray safetensors candle))
# Files that a macro names as modules. `cargo fmt` does not see them.
IN_MACROS := --edition 2024 $(wildcard crates/inlay/src/ops/*.rs crates/inlay/src/ops/*/*.rs)
PACKAGE := $(shell find python/inlay -name '*.py' -o -name '*.pyi' -o -name py.typed)

# The crates for the registry, in the order in which they are published. Candle is not built, because
# it takes over a minute.
PACKAGES := inlay-tensor-core inlay-tensor-cpu inlay-tensor-gpu inlay-tensor
PACKAGED := inlay-tensor/gpu,inlay-tensor/ndarray,inlay-tensor/safetensors,inlay-tensor/serde

# The Vulkan loader on Linux finds drivers in these directories. Other systems have their own driver.
DRIVER := libvulkan1 mesa-vulkan-drivers
HAS_DRIVER := test "$$(uname)" != Linux || find /usr/share/vulkan /etc/vulkan -name '*_icd*.json' 2>/dev/null | grep -q .
AS_ROOT := $(if $(filter-out 0,$(shell id -u)),sudo)

# PyO3 reads the build settings from this interpreter.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-python test-peers test-bridges $(BRIDGED:%=test-%) driver bench sweep tiny figures compare lint stubs format wheel package clean

help: ## Show what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.inlay $(VENV)/.demo ## Show every operation on small tensors, in the terminal and as a picture
	$(BIN)/python examples/tour.py

test: test-rust test-python ## Run all tests but those with PyTorch, Paddle and JAX

test-rust: driver ## Run the Rust tests, with the GPU tests
	cargo test --features $(FEATURES)
	cargo test --package inlay-tensor --test it no_gpu

test-python: $(VENV)/.inlay driver ## Run the Python tests
	$(BIN)/python -m pytest --quiet --maxfail 50 python/tests --ignore python/tests/peers --ignore python/tests/bridges

test-peers: $(PEERS)/.inlay ## Run the tests against the real PyTorch, Paddle and JAX, in an environment of their own
	$(PEERS)/bin/python -m pytest --quiet --maxfail 50 python/tests/peers

test-bridges: $(BRIDGED:%=test-%) ## Run the tests on tensors of PyTorch, Paddle and JAX, each in an environment of its own; test-torch for one

$(BRIDGED:%=test-%): test-%: $(BRIDGES)/%/.inlay
	$(BRIDGES)/$*/bin/python -m pytest --quiet --maxfail 50 python/tests/bridges/$* python/tests/bridges/test_benchmark_rows.py

driver: ## Install a software Vulkan driver on Debian if there is no driver
	@$(HAS_DRIVER) || { echo "no Vulkan driver: installing Debian's"; $(AS_ROOT) sh -c \
	    'apt-get update -qq && apt-get install -y -qq --no-install-recommends $(DRIVER)'; }

bench: $(BENCHED:%=$(BENCH)/%/.tools) $(BENCH)/inlay/.inlay $(BRIDGED:%=$(BENCH)/%/.inlay) ## Measure beside PyTorch, Paddle, JAX and NumPy; ONLY=masked for a part, ONLY=gpu, ONLY=bridges, THREADS=1
	$(BENCH)/inlay/bin/python -m benchmarks --only '$(ONLY)' $(THREADS:%=--threads %)
	$(if $(ONLY),,$(BENCH)/inlay/bin/python -m benchmarks --only bridges $(THREADS:%=--threads %))

figures: $(VENV)/.demo ## Update the figures and the picture of README.md and docs/ from the newest record
	$(BIN)/python -m benchmarks.figures

compare: $(BENCH)/new/.tools $(BENCH)/base/.tools $(if $(NEW_WHEEL),,dist/.built) ## Time this tree beside BASE=<git revision>; ONLY=tiny for a part, THREADS=1
	$(if $(BASE_WHEEL),,$(MAKE) $(BASE_DIST)/.built)
	$(BENCH)/base/bin/python -m pip install --quiet --force-reinstall --no-deps $(or $(BASE_WHEEL),$(BASE_DIST)/*.whl)
	$(BENCH)/new/bin/python -m pip install --quiet --force-reinstall --no-deps $(or $(NEW_WHEEL),dist/*.whl)
	$(BENCH)/new/bin/python -m benchmarks.compare --only '$(ONLY)' $(THREADS:%=--threads %)

sweep: ## Measure both strategies around each tuning threshold; ONLY=dense for a part
	cargo run --release --package inlay-tensor --example sweep -- --only '$(ONLY)' $(SHORT:%=--short)

# The counts need the names of functions, and so a profile of their own.
PROFILING := --profile profiling --config 'profile.profiling.inherits="release"' --config 'profile.profiling.debug=1'

tiny: ## Time calls of 8 x 8 from Rust, and count their instructions by stage (needs valgrind); ONLY=slice for a part
	cargo build $(PROFILING) --package inlay-tensor --example tiny
	target/profiling/examples/tiny
	$(PYTHON) tools/instructions.py target/profiling/examples/tiny --only '$(ONLY)'

lint: $(VENV)/.inlay ## Check format, lints, types and stubs
	cargo fmt --all --check
	rustfmt --check $(IN_MACROS)
	cargo clippy --workspace --all-targets --features $(FEATURES),inlay-python/gpu -- -D warnings
	cargo clippy -p inlay-tensor --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest inlay --mypy-config-file pyproject.toml --allowlist tools/stubtest.txt
	$(BIN)/python tools/stubs.py --check

stubs: $(VENV)/.inlay ## Write the type stubs and lists of names from the declarations of the operations
	$(BIN)/python tools/stubs.py

format: $(VENV)/.tools ## Format the code, and fix lints where a tool can
	cargo fmt --all
	rustfmt $(IN_MACROS)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

wheel: dist/.built ## Build the wheel into dist/

# The packages depend on each other, so cargo packages them together and builds each from the
# packages of the others. The build fails if a package lacks a file that it needs. The commands after
# it fail if a text that users look for is missing.
package: ## Make the packages for the crates registry, and build each from its package alone
	cargo package $(PACKAGES:%=--package %) --features $(PACKAGED)
	for name in $(PACKAGES); do cargo package --list --quiet --package $$name | grep -cxE 'README.md|LICENSE' | grep -qx 2 || exit 1; done

clean: ## Remove everything that the other targets have made
	cargo clean
	rm -rf $(VENV) $(PEERS) $(BRIDGES) $(BENCH) dist out .mypy_cache .ruff_cache .pytest_cache
	find python -name '*.so' -delete

# Stamp files record what was installed or built, so that make skips it the next time.

$(VENV)/.tools: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --group build --group test --group lint
	touch $@

$(VENV)/.demo: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --group demo
	touch $@

# The install is editable, so changes to Python files need no new build.
$(VENV)/.inlay: $(VENV)/.tools $(RUST)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release
	touch $@

dist/.built: $(VENV)/.tools $(RUST) $(PACKAGE)
	rm -rf dist
	$(BIN)/maturin build --release --out dist --interpreter $(BIN)/python
	touch $@

$(PEERS)/.tools: pyproject.toml
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade pip
	$(PEERS)/bin/python -m pip install --quiet --group peers
	touch $@

$(PEERS)/.inlay: $(PEERS)/.tools dist/.built
	$(PEERS)/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	touch $@

# Make would delete them as intermediate files.
.PRECIOUS: $(BRIDGES)/%/.tools $(BRIDGES)/%/.inlay

$(BRIDGES)/%/.tools: pyproject.toml
	test -x $(BRIDGES)/$*/bin/python || $(PYTHON) -m venv $(BRIDGES)/$*
	$(BRIDGES)/$*/bin/python -m pip install --quiet --upgrade pip
	$(BRIDGES)/$*/bin/python -m pip install --quiet --group bridge-$*
	touch $@

$(BRIDGES)/%/.inlay: $(BRIDGES)/%/.tools dist/.built
	$(BRIDGES)/$*/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	touch $@

# Each library has its own dependency group. The two builds of a comparison need only the common one.
$(BENCH)/%/.tools: GROUP = bench-$*
$(BENCH)/new/.tools $(BENCH)/base/.tools: GROUP = bench
$(BENCH)/%/.tools: pyproject.toml
	test -x $(BENCH)/$*/bin/python || $(PYTHON) -m venv $(BENCH)/$*
	$(BENCH)/$*/bin/python -m pip install --quiet --upgrade pip
	$(BENCH)/$*/bin/python -m pip install --quiet --group $(GROUP)
	touch $@

# Inlay is also installed beside each framework whose tensors it takes.
$(BENCH)/%/.inlay: $(BENCH)/%/.tools dist/.built
	$(BENCH)/$*/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	touch $@

# Builds the wheel of another revision. Such revisions share a target directory, so that dependencies
# are not built again. It is not that of this tree: cargo compares the times of files, and would take
# crates of one tree for those of the other.
$(BENCH)/dist/%/.built: $(VENV)/.tools
	rm -rf $(@D)
	mkdir -p $(@D)/source
	git archive $* | tar -x -m -C $(@D)/source
	cd $(@D)/source && CARGO_TARGET_DIR=$(CURDIR)/$(BENCH)/target $(CURDIR)/$(BIN)/maturin build --release --out .. --interpreter $(CURDIR)/$(BIN)/python
	rm -r $(@D)/source
	touch $@
