# Everything a newcomer needs: `make up` to see it scale something, `make test` to see that it holds.
SHELL := /bin/bash
CARGO ?= cargo
PLIMSOLL := target/release/plimsoll

.DEFAULT_GOAL := help
.PHONY: help up build test lint unit test-real conformance examples deny clean

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

up: build ## Run the php-apache walk-through and say where its report is.
	@mkdir -p .plimsoll
	@$(PLIMSOLL) simulate examples/php-apache.yaml --report .plimsoll/php-apache.html

build:
	@[ -x $(PLIMSOLL) ] || echo "building plimsoll (first time: about 2 min)"
	@$(CARGO) build --release --quiet --locked --package plimsoll

test: lint unit conformance examples fuzz-short ## All checks: lints, tests, recorded vectors, examples, a little fuzzing.

lint: ## Format, lints, and the arrows of the architecture.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	$(CARGO) xtask arrows

unit: ## Unit, property and integration tests.
	$(CARGO) test --workspace --exclude testbed --locked --quiet
	$(CARGO) test --package testbed --lib --locked --quiet

test-real: ## Start a real Kubernetes control plane and use it (needs Go; builds it the first time, in about ten minutes).
	$(CARGO) test --package testbed --locked

conformance: ## Replay the recorded answers of the real Kubernetes.
	$(CARGO) xtask conformance tests/vectors

examples: build ## Run every example as a user would.
	@for file in examples/*.yaml; do $(PLIMSOLL) simulate --quiet "$$file" || exit 1; done

deny: ## Licences, sources and duplicate versions of dependencies (installs cargo-deny).
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check bans licenses sources

clean: ## Remove everything that was built.
	$(CARGO) clean
	rm -rf .plimsoll

include $(wildcard make/*.mk)
