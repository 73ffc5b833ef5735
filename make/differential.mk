# What we replace and ours, live on one real API server, step by step.
.PHONY: differential differential-hpa differential-keda

differential: differential-hpa differential-keda ## Compare with Kubernetes' own HPA controller in 500 steps and with KEDA in 200, about 12 minutes.

differential-hpa: ## Compare with Kubernetes' own HPA controller alone (ARGS: see cargo xtask differential --help).
	@$(CARGO) xtask real build >/dev/null
	@$(CARGO) xtask differential hpa $(ARGS)

differential-keda: ## Compare with KEDA alone, and take turns with it; builds KEDA the first time, about 9 minutes.
	@$(CARGO) xtask real build --peers >/dev/null
	@$(CARGO) test --package testbed --locked --quiet --test operator -- --ignored
	@$(CARGO) xtask differential keda $(ARGS)
