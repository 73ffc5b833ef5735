# The Helm chart and the plain manifests that are rendered from it.
.PHONY: chart

chart: programs ## Render deploy/ from the Helm chart (builds Helm the first time; needs Go).
	@$(XTASK) chart
