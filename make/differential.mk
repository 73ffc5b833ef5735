# The original controllers and ours, live on one real API server, compared step by step.
.PHONY: differential differential-hpa differential-keda test-1.37 releases releases-kubernetes releases-keda-2.20.2 releases-keda-2.21.0

differential: differential-hpa differential-keda ## Compare with Kubernetes' own HPA controller in 500 steps and with KEDA in 200, about 12 minutes.

differential-hpa: programs ## Compare with Kubernetes' own HPA controller alone (ARGS: see cargo xtask differential --help).
	@$(XTASK) real build >/dev/null
	@$(XTASK) differential hpa $(ARGS)

differential-keda: programs ## Compare with KEDA alone, and hand over to and from it; builds KEDA the first time, about 9 minutes.
	@$(XTASK) real build --peers >/dev/null
	@# One at a time: `switch::handover` measures times.
	@$(CARGO) test $(WORKSPACE) --test operator -- --ignored --nocapture --test-threads=1 adapter:: switch::
	@$(XTASK) differential keda $(ARGS)

test-1.37: programs ## Compare with Kubernetes 1.37.1 in 60 steps, and its API with localkube's; builds it the first time, about 10 minutes.
	@$(XTASK) real build --kubernetes 1.37.1 >/dev/null
	@$(XTASK) differential hpa --kubernetes 1.37.1 --steps 60
	@PLIMSOLL_KUBERNETES=1.37.1 $(CARGO) test $(WORKSPACE) --test api
	@$(CARGO) test $(WORKSPACE) --test controller -- --ignored upgrade::

# What `make test` compares with further releases. They take half an hour to build, so only those that are already built are
# compared, and the others are listed as skipped. A run that differs is repeated once: on a busy machine, a late reconcile of
# either side looks like a difference.
releases: releases-kubernetes releases-keda-2.20.2 releases-keda-2.21.0

# $(1): arguments of `real build` that build what is compared with. $(2): the comparison.
define if_built
	@mkdir -p .plimsoll; missing=$$($(XTASK) real build --check $(1) 2>&1); status=$$?; \
	case $$status in \
	0) $(2) || { echo "once more:"; $(2); } ;; \
	3) echo "NOT COMPLETE: $${missing#error: }" >>$(SKIPPED) ;; \
	*) echo "$$missing"; exit $$status ;; \
	esac
endef

releases-kubernetes: programs
	@PLIMSOLL_KUBERNETES=1.37.1 $(CARGO) test $(WORKSPACE) --test api
	$(call if_built,--kubernetes 1.37.1,$(XTASK) differential hpa --kubernetes 1.37.1 --steps 40)

releases-keda-2.20.2 releases-keda-2.21.0: releases-keda-%: programs
	$(call if_built,--keda $*,$(XTASK) differential keda --keda $* --steps 30)
