# Everything a newcomer needs: `make up` to see it scale something, `make test` to see that it holds.
SHELL := /bin/bash
CARGO ?= cargo
PLIMSOLL := target/release/plimsoll
PREFIX ?= $(HOME)/.local

.DEFAULT_GOAL := help
.PHONY: help up install build test lint unit clusters conformance format programs deny clean

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

up: build ## Run a cluster on the desk and watch it scale php-apache (ARGS: see plimsoll up --help).
	@$(PLIMSOLL) up $(ARGS)

install: build ## Install plimsoll, also as kubectl plimsoll, into PREFIX/bin (~/.local/bin).
	@install -d $(PREFIX)/bin
	@install -m 755 $(PLIMSOLL) $(PREFIX)/bin/plimsoll
	@ln -sf plimsoll $(PREFIX)/bin/kubectl-plimsoll
	@echo "installed $(PREFIX)/bin/plimsoll and $(PREFIX)/bin/kubectl-plimsoll"

build:
	@[ -x $(PLIMSOLL) ] || echo "building plimsoll (first time: about 10 min on two cores)"
	@$(CARGO) build --release --quiet --locked --package plimsoll

# What could not be run, if anything; a run that left something out is not called complete.
LEFT_OUT := .plimsoll/left-out

test: lint unit conformance fuzz-short clusters ## All checks: lints, tests, recorded answers, a little fuzzing, both clusters.
	@if [ -s $(LEFT_OUT) ]; then echo; cat $(LEFT_OUT); else echo; echo "everything passed"; fi

# All that is tested is built with the features of the whole workspace, those of tests among them: a package alone has fewer,
# and cargo would build tokio and everything above it once more.
WHOLE := --workspace --locked --quiet
XTASK := target/debug/xtask

programs:
	@$(CARGO) build $(WHOLE) --bin xtask --bin plimsoll --test servers

# `cargo fmt` does not see the modules that the macro `scaler_folders!` declares.
SCALER_FOLDERS := $(wildcard crates/scalers/src/*/mod.rs)

format:
	$(CARGO) fmt --all --check
	rustfmt --edition 2024 --check $(SCALER_FOLDERS)

fmt: ## Formats all code.
	$(CARGO) fmt --all
	rustfmt --edition 2024 $(SCALER_FOLDERS)

lint: format programs ## Format, lints, the arrows of the architecture, files made from code.
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	$(XTASK) arrows
	$(XTASK) generate --check

# Tests with a program of their own: those of the testbed need clusters. All of these wait now and then, so two run at a time;
# some wait most of the time, for scrapes and polls: they are first, and many of their tests run at once.
TESTS := $(basename $(wildcard crates/*/tests/*.rs)) $(patsubst %/main.rs,%,$(wildcard crates/*/tests/*/main.rs))
ALONE := $(notdir $(filter-out crates/testbed/%,$(TESTS)))
WAITING := metrics operator controller scalers
OTHERS := $(filter-out $(WAITING),$(notdir $(filter crates/testbed/%,$(TESTS))))

unit: ## Unit, property and integration tests; every example.
	$(CARGO) test $(WHOLE) --lib --bins --examples $(addprefix --test ,$(ALONE))
	$(CARGO) test $(WHOLE) --doc

ON_CLUSTERS := $(addprefix on-clusters-,$(WAITING) $(OTHERS))
.PHONY: $(ON_CLUSTERS)
$(addprefix on-clusters-,$(WAITING)): AT_ONCE := -- --test-threads=8
$(ON_CLUSTERS): on-clusters-%:
	@$(CARGO) test $(WHOLE) --test $* $(AT_ONCE)

clusters: programs ## What runs on localkube and on a real Kubernetes (which it builds the first time, in about ten minutes; needs Go).
	@mkdir -p .plimsoll; rm -f $(LEFT_OUT)
	@$(XTASK) real build >/dev/null; status=$$?; \
	case $$status in \
	0) $(CARGO) test $(WHOLE) --no-run $(addprefix --test ,$(WAITING) $(OTHERS)) && \
	   $(MAKE) --no-print-directory --jobs=2 --output-sync=target $(ON_CLUSTERS) && \
	   $(XTASK) differential --steps 60 ;; \
	3) { echo "NOT COMPLETE: the tests on a real Kubernetes were left out; localkube was only held against recorded answers."; \
	     echo "  remedy: see the error above (most often: install Go), then run make test again"; } >$(LEFT_OUT); \
	   $(CARGO) test $(WHOLE) --test api --test servers ;; \
	*) exit $$status ;; \
	esac

conformance: programs ## Replay the recorded answers of the real Kubernetes, metrics-server, prometheus-adapter and KEDA.
	$(XTASK) conformance tests/vectors/hpa tests/vectors/metrics tests/vectors/keda --improvements

deny: ## Licences, sources and duplicate versions of dependencies (installs cargo-deny).
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check bans licenses sources

clean: ## Remove everything that was built.
	$(CARGO) clean
	rm -rf .plimsoll

include $(wildcard make/*.mk)
