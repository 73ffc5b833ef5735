# The Helm chart, the plain manifests that are rendered from it, and the container image.
.PHONY: chart

chart: programs ## Render deploy/ from the Helm chart (builds Helm the first time; needs Go).
	@$(XTASK) chart

.PHONY: image

image: dist programs ## Write the container image as an OCI layout to target/image (needs Debian's apt-get; no container engine).
	@$(XTASK) image

# The OCI layout that `make image` writes; another image, such as one of a debug build, is made by `cargo xtask image`.
IMAGE ?= target/image/oci
.PHONY: test-install
export PLIMSOLL_STEP

# `make test-install PLIMSOLL_STEP=memory` installs everything and does only the steps with this in their names.
test-install: programs ## Install the chart on real nodes: every role in pods (22 min and an image; root only; builds Kubernetes the first time, needs Go).
	@[ "$$(id -u)" = 0 ] || { echo "error: real nodes need root"; echo "  remedy: run make test-install as root"; exit 1; }
	@[ -e $(IMAGE)/index.json ] || $(MAKE) --no-print-directory image
	@echo "testing the image in $(IMAGE) of $$(date -r $(IMAGE)/index.json '+%F %T'); make image builds a new one"
	@PLIMSOLL_IMAGE=$(abspath $(IMAGE)) $(CARGO) test $(WORKSPACE) --test install -- --ignored --nocapture

.PHONY: test-dashboards

test-dashboards: programs ## Run every query of the chart's dashboards and alerts in a real Prometheus that scrapes the three roles (2 min; downloads Prometheus the first time).
	@$(CARGO) test $(WORKSPACE) --test metrics -- --ignored --nocapture dashboards::

.PHONY: test-switch

test-switch: programs ## Switch from Kubernetes' HPA controller and the metrics APIs of others to ours and back, with missed syncs (3 min; builds a Kubernetes the first time, needs Go).
	@$(XTASK) real build >/dev/null
	@$(CARGO) test $(WORKSPACE) --test controller --test metrics -- --ignored --nocapture switch::
