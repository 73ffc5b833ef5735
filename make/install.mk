# The Helm chart, the plain manifests that are rendered from it, and the container image.
.PHONY: chart

chart: programs ## Render deploy/ from the Helm chart (builds Helm the first time; needs Go).
	@$(XTASK) chart

.PHONY: image

image: dist programs ## Write the container image as an OCI layout to target/image (needs Debian's apt-get; no container engine).
	@$(XTASK) image
