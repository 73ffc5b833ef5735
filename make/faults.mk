# The long forms of suites whose short forms are part of `make test`. Each takes PLIMSOLL_FAULT_SEED for another run.
.PHONY: faults split-brain hostile-sources hostile-tenant soak soak-controller

# Tests of the crate `controllers` on localkube, in virtual time: hours of faults in minutes.
CONTROLLERS_TEST = $(CARGO) test $(WORKSPACE) --lib -- --nocapture --include-ignored
STEPS ?= 10000
KILLS ?= 100
SOAK ?= 20m

faults: ## API faults for operator and metrics server, STEPS (10000) generated steps each.
	PLIMSOLL_FAULT_STEPS=$(STEPS) $(CONTROLLERS_TEST) faults_of_the_api_server

split-brain: ## Leaders of the operator killed KILLS (100) times at random moments, delayed writes, clocks that are set; the writes are checked.
	PLIMSOLL_KILLS=$(KILLS) $(CONTROLLERS_TEST) operator::tests::split_brain

hostile-sources: ## Hostile sources on whole processes, more of them and for longer; every probe within 100 ms.
	PLIMSOLL_SOAK=1 $(CARGO) test --release $(WORKSPACE) --test hostile_sources -- --nocapture --test-threads=1

hostile-tenant: ## Every text field of every object of a tenant with every hostile value, and every parameter of every trigger.
	PLIMSOLL_SOAK=1 $(CONTROLLERS_TEST) operator::tests::hostile_tenant

soak: ## The operator with 10,000 objects that come and go, with faults, for SOAK (20m): memory and open files are bounded.
	PLIMSOLL_SOAK_TIME=$(SOAK) $(CONTROLLERS_TEST) operator::tests::soak

soak-controller: programs ## The controller: faults again and again, the leader killed 50 times, on both clusters (10 min; builds a Kubernetes the first time, needs Go).
	$(XTASK) real build >/dev/null
	PLIMSOLL_SOAK=1 PLIMSOLL_BIN=$(CURDIR)/target/debug/plimsoll \
		$(CARGO) test $(WORKSPACE) --test controller -- --nocapture
