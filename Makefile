# Everything a newcomer needs: `make up` runs Plimsoll on an embedded cluster, `make test` runs all checks.
SHELL := /bin/bash
CARGO ?= cargo
PREFIX ?= $(HOME)/.local

.DEFAULT_GOAL := help
.PHONY: help up install test lint unit clusters conformance format fmt programs deny clean

help: ## Show this list.
	@grep -hE '^[a-z0-9.-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-19s %s\n", $$1, $$2}'

# Every target builds with the features of the whole workspace and in the dev profile: with `--package`, cargo selects fewer
# features and compiles tokio and everything above it a second time.
WORKSPACE := --workspace --locked --quiet

# Clippy compiles our crates in every target: it lints while it compiles, whereas `cargo clippy` would compile all
# dependencies once more only to read them.
export RUSTC_WORKSPACE_WRAPPER := $(notdir $(shell command -v clippy-driver))
PLIMSOLL := target/debug/plimsoll
XTASK := target/debug/xtask

# A first build takes minutes, so cargo shows its progress; later ones are quiet.
up: ## Run an embedded cluster and watch it scale php-apache (ARGS: see plimsoll up --help).
	@[ -x $(PLIMSOLL) ] || echo "building plimsoll (first time: about 5 min on two cores)"
	@$(CARGO) build $(if $(wildcard $(PLIMSOLL)),$(WORKSPACE),$(filter-out --quiet,$(WORKSPACE))) --bin plimsoll
	@$(PLIMSOLL) up $(ARGS)

install: ## Build an optimized plimsoll and install it, also as kubectl plimsoll, into PREFIX/bin (~/.local/bin).
	@[ -x target/release/plimsoll ] || echo "building plimsoll (first time: about 10 min on two cores)"
	@$(CARGO) build --release $(if $(wildcard target/release/plimsoll),--quiet) --locked --package plimsoll
	@install -d $(PREFIX)/bin
	@install -m 755 target/release/plimsoll $(PREFIX)/bin/plimsoll
	@ln -sf plimsoll $(PREFIX)/bin/kubectl-plimsoll
	@ln -sf plimsoll $(PREFIX)/bin/kubectl_complete-plimsoll
	@echo "installed $(PREFIX)/bin/plimsoll and $(PREFIX)/bin/kubectl-plimsoll"

# Lists the checks that could not run, so that an incomplete run does not end with "everything passed".
SKIPPED := .plimsoll/skipped

test: lint unit conformance fuzz-short clusters test-console ## All checks: lints, tests, recorded answers, short fuzzing, both clusters, the web console.
	@if [ -s $(SKIPPED) ]; then echo; cat $(SKIPPED); else echo; echo "everything passed"; fi
	@echo "left out: make test-install, which runs every role in pods on real nodes (as root), and make test-upgrade test-switch test-dashboards test-scalers"

programs:
	@$(CARGO) build $(WORKSPACE) --bin xtask --bin plimsoll --test servers

# `cargo fmt` does not see the modules that the macro `scaler_folders!` declares.
SCALER_FOLDERS := $(wildcard crates/scalers/src/*/mod.rs)

format:
	$(CARGO) fmt --all --check
	rustfmt --edition 2024 --check $(SCALER_FOLDERS)

fmt: ## Format all code.
	$(CARGO) fmt --all
	rustfmt --edition 2024 $(SCALER_FOLDERS)

lint: format ## Format, lints, dependencies between crates, references and links, file sizes, generated files.
	@command -v clippy-driver >/dev/null || { echo "error: clippy is not installed"; echo "  remedy: rustup component add clippy"; exit 1; }
	@mkdir -p .plimsoll
	$(CARGO) build --workspace --locked --all-targets 2>&1 | tee .plimsoll/lint.log; exit $${PIPESTATUS[0]}
	@! grep --quiet '^warning' .plimsoll/lint.log || { echo "error: warnings, see above"; exit 1; }
	$(XTASK) arrows
	$(XTASK) check docs sizes --deny-long-files
	$(XTASK) generate --check

# Test programs. Those of the testbed need clusters and spend much of their time waiting, so two programs run at a time; the
# ones that wait the most (for scrapes and polls) start first and run eight of their tests at once.
TEST_PROGRAMS := $(basename $(wildcard crates/*/tests/*.rs)) $(patsubst %/main.rs,%,$(wildcard crates/*/tests/*/main.rs))
STANDALONE_TESTS := $(notdir $(filter-out crates/testbed/%,$(TEST_PROGRAMS)))
WAITING_TESTS := metrics operator controller scalers
CLUSTER_TESTS := $(WAITING_TESTS) $(filter-out $(WAITING_TESTS),$(notdir $(filter crates/testbed/%,$(TEST_PROGRAMS))))

unit: ## Unit, property and integration tests.
	$(CARGO) test $(WORKSPACE) --lib --bins $(addprefix --test ,$(STANDALONE_TESTS))
	$(CARGO) test $(WORKSPACE) --doc

ON_CLUSTERS := $(addprefix on-clusters-,$(CLUSTER_TESTS))
.PHONY: $(ON_CLUSTERS)
$(addprefix on-clusters-,$(WAITING_TESTS)): TEST_ARGS := -- --test-threads=8
$(ON_CLUSTERS): on-clusters-%:
	@$(CARGO) test $(WORKSPACE) --test $* $(TEST_ARGS)

clusters: programs ## Tests on localkube and on a real Kubernetes (which it builds the first time, in about ten minutes; needs Go).
	@mkdir -p .plimsoll; rm -f $(SKIPPED)
	@$(XTASK) real build >/dev/null; status=$$?; \
	case $$status in \
	0) $(CARGO) test $(WORKSPACE) --no-run $(addprefix --test ,$(CLUSTER_TESTS)) && \
	   $(MAKE) --no-print-directory --jobs=2 --output-sync=target $(ON_CLUSTERS) && \
	   $(XTASK) differential --steps 60 && \
	   $(MAKE) --no-print-directory releases ;; \
	3) { echo "NOT COMPLETE: the tests on a real Kubernetes were skipped; localkube was only compared with recorded answers."; \
	     echo "  remedy: see the error above (most often: install Go), then run make test again"; } >$(SKIPPED); \
	   $(CARGO) test $(WORKSPACE) --test api --test servers && \
	   PLIMSOLL_KUBERNETES=1.37.1 $(CARGO) test $(WORKSPACE) --test api ;; \
	*) exit $$status ;; \
	esac

conformance: programs ## Replay the recorded answers of the real Kubernetes, metrics-server, prometheus-adapter and KEDA.
	$(XTASK) conformance tests/vectors/hpa tests/vectors/metrics tests/vectors/keda tests/vectors/keda-2.21 --improvements

deny: ## Licences, sources, duplicate versions and known vulnerabilities of dependencies (installs cargo-deny).
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check bans licenses sources
	@if $(CARGO) deny fetch db; then $(CARGO) deny check --disable-fetch advisories; \
	else echo 'make deny: the advisory database cannot be fetched; known vulnerabilities were not checked' >&2; fi

clean: ## Remove everything that was built.
	$(CARGO) clean
	rm -rf .plimsoll

include $(wildcard make/*.mk)
