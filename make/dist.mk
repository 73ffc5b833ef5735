# The binary that images carry and benches measure. It is laid out by what was learned from a run: what is done all day lies
# together, and what hardly ever happens is out of its way.
.PHONY: dist learn

HOST = $(shell rustc -vV | sed -n 's/^host: //p')
DIST = target/$(HOST)/dist/plimsoll
# What was learned. It holds for functions that have not changed since; others are built as without it.
LEARNED := make/plimsoll.profdata.gz
# Its name tells cargo when something else was learned; written anew, it would have everything built again.
UNPACKED = target/learned-$(shell cksum <$(LEARNED) | cut --delimiter=' ' --fields=1).profdata

$(UNPACKED):
	@mkdir -p $(@D) && gzip --decompress --stdout $(LEARNED) >$@.part && mv $@.part $@

dist: $(UNPACKED) ## Build the binary that images carry (15 min on two cores).
	@RUSTFLAGS="-Cprofile-use=$(CURDIR)/$(UNPACKED)" \
		$(CARGO) build --locked --quiet --profile dist --target $(HOST) --package plimsoll

LEARNING := $(CURDIR)/target/learning
LLVM = $(shell rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
PROFDATA = $(firstword $(wildcard $(shell rustc --print sysroot)/lib/rustlib/$(HOST)/bin/llvm-profdata /usr/lib/llvm-$(LLVM)/bin/llvm-profdata))

learn: ## Learn anew what `make dist` goes by, after a change of the compiler or of much of the operator (30 min).
	@[ -n "$(PROFDATA)" ] || { \
		echo "error: llvm-profdata of LLVM $(LLVM) is missing"; \
		echo "  remedy: rustup component add llvm-tools, or install the package llvm-$(LLVM), then run make learn again"; \
		exit 1; \
	}
	@rm -rf $(LEARNING)/notes
	@RUSTFLAGS="-Cprofile-generate=$(LEARNING)/notes" \
		$(CARGO) build --locked --quiet --profile dist --target $(HOST) --target-dir $(LEARNING) --package plimsoll
	@PLIMSOLL_PROGRAM=$(LEARNING)/$(HOST)/dist/plimsoll \
		$(CARGO) bench --locked --quiet --package testbed --bench operator -- learn
	@$(PROFDATA) merge --sparse --output=$(LEARNING)/learned $(LEARNING)/notes/*.profraw
	@gzip --best --no-name --stdout $(LEARNING)/learned >$(LEARNED)
