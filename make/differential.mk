# The original controllers and ours, live on one real API server, compared step by step.
.PHONY: differential differential-hpa differential-keda test-1.37

differential: differential-hpa differential-keda ## Compare with Kubernetes' own HPA controller in 500 steps and with KEDA in 200, about 12 minutes.

differential-hpa: programs ## Compare with Kubernetes' own HPA controller alone (ARGS: see cargo xtask differential --help).
	@$(XTASK) real build >/dev/null
	@$(XTASK) differential hpa $(ARGS)

differential-keda: programs ## Compare with KEDA alone, and hand over to and from it; builds KEDA the first time, about 9 minutes.
	@$(XTASK) real build --peers >/dev/null
	@$(CARGO) test $(WORKSPACE) --test operator -- --ignored
	@$(XTASK) differential keda $(ARGS)

test-1.37: programs ## Compare with Kubernetes 1.37.1 in 60 steps, and its API with localkube's; builds it the first time, about 10 minutes.
	@$(XTASK) real build --kubernetes 1.37.1 >/dev/null
	@$(XTASK) differential hpa --kubernetes 1.37.1 --steps 60
	@PLIMSOLL_KUBERNETES=1.37.1 $(CARGO) test $(WORKSPACE) --test api
	@$(CARGO) test $(WORKSPACE) --test controller -- --ignored upgrade::
