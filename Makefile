# Each target does its own set-up: a virtual environment in .venv, the kernel built, all installed.
# PYTHON names the interpreter (3.11 or later). Building needs Rust and a C linker too: `check-tools`.

PYTHON ?= python3
CORPUS ?=
VENV := .venv
BIN := $(VENV)/bin
KERNEL := $(shell find wordpiece_core/kernel -name '*.rs' -o -name 'Cargo.*' | grep -v /target/)

.PHONY: demo test soak check-all test-cluster smoke-cluster test-browser lint docs bench fuzz memcheck \
	check-tools clean

demo: $(VENV)/.installed
	$(BIN)/python -m pipelines.commands.demo out/demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

# Slow tests: the marked ones; properties with more examples; every state that stopping a job can
# leave (some 100,000 stops); faults of the file system; and thousands of random tokenizers, texts
# and all code points next to `tokenizers` and `sentencepiece`.
soak: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --maxprocesses 4 -m soak
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --hypothesis-profile=soak tests/wordpiece_core
	$(BIN)/python -m tests.soak.stops
	$(BIN)/python -m tests.soak.faults --every 5
	$(BIN)/python -m tests.parity random --seed 0 --cases 3200
	$(BIN)/python -m tests.parity reference --seed 0 --cases 3200
	$(BIN)/python -m tests.parity points

# Every check of a release and of each night, except the longest of `make soak`.
check-all: test lint docs test-browser test-cluster memcheck $(VENV)/.installed-test
	$(MAKE) fuzz FUZZ_SECONDS=5
	$(BIN)/python -m pytest -n auto --maxprocesses 4 -m soak
	$(BIN)/python -m tests.soak.stops --only count
	$(BIN)/python -m tests.soak.stops --only encode

# On Flink, Spark and Prism, with stores and with faults. Needs Java 17, Maven, Go and npm. CASES: words
# in the names of the cases to run (`--list` names them).
CASES ?=
test-cluster: $(VENV)/.installed-test $(VENV)/.installed-cluster
	$(BIN)/python -m tests.cluster $(CASES)

# One job on Prism and one on Flink.
smoke-cluster: $(VENV)/.installed-test $(VENV)/.installed-cluster
	$(BIN)/python -m tests.cluster --smoke

# The pages of `report`, in Chromium without a window.
test-browser: $(VENV)/.installed-test $(VENV)/.installed-browser
	$(BIN)/python -m pytest -p no:cacheprovider tests/browser/report_pages.py

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd wordpiece_core/kernel && cargo fmt --all --check
	cd wordpiece_core/kernel && cargo clippy --locked --workspace --all-targets -- -D warnings
	cd wordpiece_core/kernel && cargo clippy --locked -p wordpiece-core --no-default-features --all-targets -- -D warnings
	cd wordpiece_core/kernel && cargo clippy --locked --workspace --all-targets --features wordpiece-kernel/python -- -D warnings
	cd wordpiece_core/kernel && cargo test --locked --workspace  # integer overflow is an error here

# Build the documentation into out/site/index.html. Its search needs a server, for example
# `python -m http.server`. The variable turns off a notice of the theme.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --config-file docs/site/mkdocs.yml

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks $(CORPUS)

# Coverage-guided fuzzing, FUZZ_SECONDS for each target: those of the kernel, with
# the address sanitizer (which stable Rust has, but does not offer), and changed tokenizer files.
FUZZ_SECONDS ?= 60
FUZZED := $(CURDIR)/out/fuzz
fuzz: $(VENV)/.installed-test
	cargo fuzz --version || cargo install --locked cargo-fuzz
	$(BIN)/python -m tests.fuzz.seeds $(FUZZED)
	cd wordpiece_core/kernel && for target in $$(cargo fuzz list); do \
		mkdir -p $(FUZZED)/$$target && RUSTC_BOOTSTRAP=1 cargo fuzz run $$target $(FUZZED)/$$target -- \
		-max_total_time=$(FUZZ_SECONDS) -timeout=60 -rss_limit_mb=4096 -max_len=4096 -verbosity=0 \
		-print_final_stats=1 || exit 1; done
	$(BIN)/python -m tests.fuzz.tokenizer_files --seconds $(FUZZ_SECONDS)

# Run the kernel's tests, and exchange arrays with Python, under valgrind, which finds accesses beyond
# buffers. Uninitialized-read checks are off: optimized early reads give false positives.
VALGRIND := valgrind -q --error-exitcode=1 --show-leak-kinds=none --undef-value-errors=no
memcheck: $(VENV)/.installed
	cd wordpiece_core/kernel && cargo test --locked --workspace --profile memcheck --lib \
		--config "target.'cfg(all())'.runner = '$(VALGRIND)'" -- --skip no_character_is_both
	PYTHONMALLOC=malloc $(VALGRIND) \
		--suppressions=tests/memory/loader.supp $(BIN)/python -m tests.memory.arrays

# What building needs, and where to get it: one line for each tool that is missing or too old.
check-tools:
	@.ci/check-tools $(PYTHON)

$(BIN)/python:
	@.ci/check-tools $(PYTHON)
	$(PYTHON) -m venv $(VENV)

# Pip is quiet; maturin shows how the kernel is built, which takes a minute or two the first time.
$(VENV)/.installed: pyproject.toml $(KERNEL) | $(BIN)/python
	@.ci/check-tools $(BIN)/python
	@echo "installing the libraries and building the Rust kernel"
	$(BIN)/python -m pip install --quiet 'maturin>=1.9,<2'
	PIP_QUIET=1 $(BIN)/maturin develop --release
	@touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) out wordpiece_core/kernel/target wordpiece_core/_kernel*.so
