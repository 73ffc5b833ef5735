# Benchmarks against their limits. They need an idle machine to mean anything, so no test depends on them.
.PHONY: bench bench-controller bench-metrics bench-operator valgrind

bench: valgrind ## Time and instruction counts against their limits (installs valgrind if it is missing).
	@status=0; \
	$(CARGO) bench --locked --quiet --package engine --bench step || status=1; \
	$(CARGO) bench --locked --quiet --package sim --bench month || status=1; \
	$(CARGO) bench --locked --quiet --package localkube --features jemalloc --bench cluster || status=1; \
	$(CARGO) bench --locked --quiet --package cluster --bench overlap || status=1; \
	$(CARGO) bench --locked --quiet --package sources --features jemalloc --bench kubelet || status=1; \
	exit $$status

# Parts: `beside` Kubernetes' own controller, `alone`, `recording` on and off, all `roles` in one process, or all.
BENCH_CONTROLLER ?= beside alone recording roles

bench-controller: ## The controller beside Kubernetes' own, alone with 10,000 HPAs, recording and not, and all roles in one process (30 min; builds a Kubernetes the first time, needs Go).
	@$(CARGO) build --release --quiet --locked --package plimsoll --features jemalloc
	@$(CARGO) bench --profile release --locked --quiet --package testbed --features jemalloc --bench controller -- $(BENCH_CONTROLLER)

# Parts: `resource` beside metrics-server, `alone`, `custom` beside prometheus-adapter, or all.
BENCH_METRICS ?= resource alone custom

bench-metrics: dist ## The metrics server beside metrics-server and prometheus-adapter, and alone with 5,000 nodes (15 min; builds all of them the first time, needs Go).
	@PLIMSOLL_PROGRAM=$(CURDIR)/$(DIST) \
		$(CARGO) bench --locked --quiet --package testbed --features jemalloc --bench metrics -- $(BENCH_METRICS)

# Parts: `beside` KEDA, `alone`, `same` queries, a `restart` of Prometheus, `wake`, `push`, 20 `backends`, `kafka` beside KEDA, or all.
BENCH_OPERATOR ?= beside alone same restart wake push backends kafka

bench-operator: dist ## The operator beside KEDA, and alone with 10,000 ScaledObjects (70 min; builds all of them the first time, needs Go, and Java and Maven for kafka).
	@PLIMSOLL_PROGRAM=$(CURDIR)/$(DIST) \
		$(CARGO) bench --locked --quiet --package testbed --features jemalloc --bench operator -- $(BENCH_OPERATOR)

valgrind:
	@command -v valgrind >/dev/null || { \
		echo "installing valgrind, which counts instructions"; \
		root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$root apt-get update --quiet && $$root apt-get install --quiet --yes valgrind; \
	} || { \
		echo "error: valgrind is not installed, and apt-get cannot install it"; \
		echo "  remedy: install it with your package manager, then run make bench again"; \
		exit 1; \
	}
