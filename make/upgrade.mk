# A rolling update from an older revision to this one, and back; both measured side by side.
.PHONY: test-upgrade bench-versions

# The baseline is tag v0.1.0. A clone without tags has its revision in a file.
OLD ?= $(shell git rev-parse --verify --quiet 'v0.1.0^{commit}' || cat tests/stored/v0.1.0/revision)
UPGRADES = $(CACHE)/upgrades

# Unpacks OLD, builds it there and keeps the binary, once for each revision. $(1): the folder of the binary; $(2): how long it takes;
# $(3): commands that build it in the unpacked sources; $(4): the binary that they write.
define build_old
	revision=$$(git rev-parse --verify --quiet '$(OLD)^{commit}') || { \
		echo "error: there is no revision $(OLD) in this clone"; \
		echo "  remedy: git fetch --unshallow --tags, or name another one: make $@ OLD=REVISION"; \
		exit 1; \
	}; \
	old="$(UPGRADES)/$(1)"; \
	if [ ! -x "$$old/plimsoll" ]; then \
		echo "building plimsoll of $$revision ($(2) on two cores)"; \
		rm -rf "$$old" && mkdir -p "$$old/source" && git archive "$$revision" | tar -x -C "$$old/source" && \
		(cd "$$old/source" && $(3)) && \
		cp "$(4)" "$$old/plimsoll.part" && rm -rf "$$old/source" && mv "$$old/plimsoll.part" "$$old/plimsoll" || exit 1; \
	fi
endef

# `make test-upgrade OLD=main~20`. Debug builds share what cargo has compiled, because dependencies change rarely.
test-upgrade: programs ## Upgrade controller, operator and metrics server from OLD (v0.1.0) and roll back, under load, on both clusters (5 min to build OLD first; downloads Prometheus the first time).
	@$(XTASK) real build >/dev/null
	@$(call build_old,$$revision,5 min,RUSTC_WORKSPACE_WRAPPER= PLIMSOLL_REVISION="$$revision" $(CARGO) build --locked --quiet --package plimsoll --target-dir "$(UPGRADES)/target",$(UPGRADES)/target/debug/plimsoll); \
	PLIMSOLL_OLD_PROGRAM="$$old/plimsoll" $(CARGO) test $(WORKSPACE) --test controller --test operator --test metrics -- --ignored --nocapture versions::

# Parts: `controller`, `operator`, `metrics`, or all.
BENCH_VERSIONS ?= controller operator metrics

bench-versions: dist ## The binary of images of OLD (v0.1.0) and of this revision in one run, as ratios (25 min, and 15 min to build OLD).
	@$(call build_old,dist-$$revision,15 min,$(MAKE) --no-print-directory dist,$$old/source/$(DIST)); \
	status=0; for bench in $(BENCH_VERSIONS); do \
		PLIMSOLL_OLD_PROGRAM="$$old/plimsoll" PLIMSOLL_PROGRAM=$(CURDIR)/$(DIST) $(CARGO) bench --profile release \
			--locked --quiet --package testbed --features jemalloc --bench $$bench -- versions || status=1; \
	done; exit $$status
