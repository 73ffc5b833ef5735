# The web console's frontend. Its built files are committed in crates/web-console/assets, so that only who changes it needs Node.

# Prints the browser's path, or why the tests cannot run on this machine.
CONSOLE_TOOLS := CHROMIUM='$(CHROMIUM)' make/console-tools.sh
.PHONY: console console-check test-console test-console-up bench-console console-screenshots

console/node_modules: console/package-lock.json
	@command -v npm >/dev/null || { echo "error: npm is not installed"; echo "  remedy: install Node.js 20 or later"; exit 1; }
	@cd console && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

console: console/node_modules ## Build the web console's frontend into crates/web-console/assets (needs Node).
	@cd console && npx --no-install tsc --noEmit && node build.mjs

console-check: console/node_modules ## Check types, and that the committed assets match their sources (needs Node).
	@cd console && npx --no-install tsc --noEmit && node build.mjs --check

# Part of `make test`: a machine without Node, or on which Chromium cannot be installed, lists the check as skipped. A run that fails
# is repeated once, because a browser on a busy machine may be ended by the system.
BROWSER_TESTS := timeout --foreground 600 npm test --silent
test-console: ## Test the web console's frontend in a real Chromium (needs Node; installs Chromium on Debian as root).
	@if found=$$($(CONSOLE_TOOLS)); then \
	  $(MAKE) --no-print-directory console-check && cd console && export CHROMIUM="$$found" && \
	    { $(BROWSER_TESTS) || { echo "once more:"; $(BROWSER_TESTS); }; }; \
	else \
	  mkdir -p .plimsoll; \
	  { echo "NOT COMPLETE: the web console was not tested in a browser: $$found."; \
	    echo "  remedy: install what is missing, then run make test-console (CHROMIUM names a browser)"; } | tee -a $(SKIPPED); \
	fi

test-console-up: console-check ## Test the web console of a running plimsoll up in a real Chromium (needs Node and Chromium).
	@$(CARGO) build $(WORKSPACE) --bin plimsoll
	@found=$$($(CONSOLE_TOOLS)) || { echo "error: $$found"; exit 1; }; \
	cd console && CHROMIUM="$$found" PLIMSOLL="$(CURDIR)/$(PLIMSOLL)" node --test tests/up.test.mjs

bench-console: console-check ## The web console with 10,000 autoscalers against its limits (5 min; needs Node, Chromium and an idle machine).
	@$(CARGO) build --release --quiet --locked --package plimsoll
	@found=$$($(CONSOLE_TOOLS)) || { echo "error: $$found"; exit 1; }; \
	cd console && CHROMIUM="$$found" PLIMSOLL="$(CURDIR)/target/release/plimsoll" node tests/bench.mjs

console-screenshots: console-check ## Take screenshots of every page into .plimsoll/screenshots: wide and phone, light and dark.
	@found=$$($(CONSOLE_TOOLS)) || { echo "error: $$found"; exit 1; }; \
	cd console && CHROMIUM="$$found" node tests/screenshots.mjs ../.plimsoll/screenshots
