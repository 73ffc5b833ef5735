# Kubernetes' own HPA controller and ours, live on one real API server, step by step.
.PHONY: differential

differential: ## Compare with Kubernetes' own HPA controller in 500 steps, about 6 minutes (ARGS: see cargo xtask differential --help).
	@$(CARGO) xtask real build >/dev/null
	@$(CARGO) xtask differential $(ARGS)
