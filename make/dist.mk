# The binary that images carry and that benches measure: profile-guided optimization (PGO), link-time optimization, jemalloc,
# and no embedded cluster.
.PHONY: dist pgo-profile

# What is shipped or measured is compiled by rustc itself, not by clippy.
dist pgo-profile bench bench-controller bench-metrics bench-operator bench-versions: export RUSTC_WORKSPACE_WRAPPER :=

HOST = $(shell rustc -vV | sed -n 's/^host: //p')
DIST = target/$(HOST)/dist/plimsoll
DIST_BUILD = $(CARGO) build --locked --quiet --profile dist --target $(HOST) --package plimsoll \
	--no-default-features --features jemalloc
# The profile applies to functions that have not changed since it was recorded; rustc builds the others without it.
PGO_PROFILE := make/plimsoll.profdata.gz
# The checksum in the name makes cargo rebuild exactly when the profile changes.
PGO_UNPACKED = target/pgo-$(shell cksum <$(PGO_PROFILE) | cut --delimiter=' ' --fields=1).profdata

$(PGO_UNPACKED):
	@mkdir -p $(@D) && gzip --decompress --stdout $(PGO_PROFILE) >$@.part && mv $@.part $@

# Relocations are packed, which saves a megabyte; glibc has read this form since 2.36.
comma := ,
DIST_LINK = $(if $(filter %-linux-gnu,$(HOST)),-Clink-arg=-Wl$(comma)-z$(comma)pack-relative-relocs)

# Code is small unless the profile shows that it runs often: lower limits of the inliner for calls that are not hot, and optimization for
# size of functions that are cold. Together they save 1.5 MB.
DIST_SIZE := $(addprefix -Cllvm-args=,-inline-threshold=25 -inlinehint-threshold=60 -pgso-lwss-only=false)

dist: $(PGO_UNPACKED) ## Build the binary that images carry (15 min on two cores).
	@RUSTFLAGS="$(DIST_LINK) $(DIST_SIZE) -Cprofile-use=$(CURDIR)/$(PGO_UNPACKED)" $(DIST_BUILD)

PGO_DIR := $(CURDIR)/target/pgo
LLVM = $(shell rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
PROFDATA = $(firstword $(wildcard $(shell rustc --print sysroot)/lib/rustlib/$(HOST)/bin/llvm-profdata /usr/lib/llvm-$(LLVM)/bin/llvm-profdata))

PGO_WORKLOAD = PLIMSOLL_PROGRAM=$(PGO_DIR)/$(HOST)/dist/plimsoll $(CARGO) bench --locked --quiet --package testbed --bench

pgo-profile: ## Record the profile of `make dist` again, after a new compiler or many changes of a role (40 min; builds a Kubernetes the first time, needs Go).
	@[ -n "$(PROFDATA)" ] || { \
		echo "error: llvm-profdata of LLVM $(LLVM) is missing"; \
		echo "  remedy: rustup component add llvm-tools, or install the package llvm-$(LLVM), then run make pgo-profile again"; \
		exit 1; \
	}
	@rm -rf $(PGO_DIR)/raw
	@RUSTFLAGS="-Cprofile-generate=$(PGO_DIR)/raw" $(DIST_BUILD) --target-dir $(PGO_DIR)
	@$(PGO_WORKLOAD) operator -- pgo-workload
	@$(PGO_WORKLOAD) controller -- pgo-workload
	@$(PGO_WORKLOAD) metrics -- pgo-workload
	@$(PROFDATA) merge --sparse --output=$(PGO_DIR)/merged $(PGO_DIR)/raw/*.profraw
	@gzip --best --no-name --stdout $(PGO_DIR)/merged >$(PGO_PROFILE)
