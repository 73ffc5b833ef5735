# The original controllers and ours, live on one real API server, compared step by step.
.PHONY: differential differential-hpa differential-keda

differential: differential-hpa differential-keda ## Compare with Kubernetes' own HPA controller in 500 steps and with KEDA in 200, about 12 minutes.

differential-hpa: programs ## Compare with Kubernetes' own HPA controller alone (ARGS: see cargo xtask differential --help).
	@$(XTASK) real build >/dev/null
	@$(XTASK) differential hpa $(ARGS)

differential-keda: programs ## Compare with KEDA alone, and hand over to and from it; builds KEDA the first time, about 9 minutes.
	@$(XTASK) real build --peers >/dev/null
	@$(CARGO) test $(WORKSPACE) --test operator -- --ignored
	@$(XTASK) differential keda $(ARGS)
