# The web console's frontend. Its built files are committed in crates/web-console/assets, so that only who changes it needs Node.

CHROMIUM ?= $(firstword $(wildcard /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome))
.PHONY: console console-check test-console test-console-up console-screenshots

console/node_modules: console/package-lock.json
	@command -v npm >/dev/null || { echo "error: npm is not installed"; echo "  remedy: install Node.js 20 or later"; exit 1; }
	@cd console && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

console: console/node_modules ## Build the web console's frontend into crates/web-console/assets (needs Node).
	@cd console && npx --no-install tsc --noEmit && node build.mjs

console-check: console/node_modules ## Check types, and that the committed assets match their sources (needs Node).
	@cd console && npx --no-install tsc --noEmit && node build.mjs --check

# Debian's Chromium is installed where that is possible.
test-console: console-check ## Test the web console's frontend in a real Chromium (needs Node; installs Chromium on Debian as root).
	@[ -n "$(CHROMIUM)" ] || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } || \
	  { echo "error: Chromium is not installed"; echo "  remedy: install it, or name it: make test-console CHROMIUM=/path/to/chromium"; exit 1; }
	@cd console && CHROMIUM="$(or $(CHROMIUM),/usr/bin/chromium)" npm test --silent

test-console-up: console-check ## Test the web console of a running plimsoll up in a real Chromium (needs Node and Chromium).
	@$(CARGO) build $(WORKSPACE) --bin plimsoll
	@cd console && CHROMIUM="$(or $(CHROMIUM),/usr/bin/chromium)" PLIMSOLL="$(CURDIR)/$(PLIMSOLL)" node --test tests/up.test.mjs

console-screenshots: console-check ## Take screenshots of every page into .plimsoll/screenshots: wide and phone, light and dark.
	@cd console && CHROMIUM="$(or $(CHROMIUM),/usr/bin/chromium)" node tests/screenshots.mjs ../.plimsoll/screenshots
