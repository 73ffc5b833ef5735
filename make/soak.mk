# The long versions of the tests of the controller: hours of trouble in minutes.
.PHONY: soak

soak: programs ## Faults again and again, the leader killed 50 times, on both clusters (10 min; builds a Kubernetes the first time, needs Go).
	$(XTASK) real build >/dev/null
	PLIMSOLL_SOAK=1 PLIMSOLL_BIN=$(CURDIR)/target/debug/plimsoll \
		$(CARGO) test $(WORKSPACE) --test controller -- --nocapture
