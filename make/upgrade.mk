# A rolling update from an older revision to this one, and back.
.PHONY: test-upgrade

# The baseline is tag v0.1.0. A clone without tags has its revision in a file.
OLD ?= $(shell git rev-parse --verify --quiet 'v0.1.0^{commit}' || cat tests/stored/v0.1.0/revision)
UPGRADES = $(CACHE)/upgrades

# `make test-upgrade OLD=main~20`. Revisions are built once; they share what cargo has compiled, because dependencies change rarely.
test-upgrade: programs ## Upgrade controller and operator from OLD (v0.1.0) and roll back, under load, on both clusters (6 min, and 5 min to build OLD).
	@$(XTASK) real build >/dev/null
	@revision=$$(git rev-parse --verify --quiet '$(OLD)^{commit}') || { \
		echo "error: there is no revision $(OLD) in this clone"; \
		echo "  remedy: git fetch --unshallow --tags, or name another one: make test-upgrade OLD=REVISION"; \
		exit 1; \
	}; \
	old="$(UPGRADES)/$$revision"; \
	if [ ! -x "$$old/plimsoll" ]; then \
		echo "building plimsoll of $$revision (5 min on two cores)"; \
		rm -rf "$$old" && mkdir -p "$$old/source" && git archive "$$revision" | tar -x -C "$$old/source" && \
		(cd "$$old/source" && RUSTC_WORKSPACE_WRAPPER= PLIMSOLL_REVISION="$$revision" $(CARGO) build --locked --quiet --package plimsoll --target-dir "$(UPGRADES)/target") && \
		cp "$(UPGRADES)/target/debug/plimsoll" "$$old/plimsoll.part" && rm -rf "$$old/source" && mv "$$old/plimsoll.part" "$$old/plimsoll" || exit 1; \
	fi; \
	PLIMSOLL_OLD_PROGRAM="$$old/plimsoll" $(CARGO) test $(WORKSPACE) --test controller --test operator -- --ignored --nocapture versions::
