# The documentation as a site.
.PHONY: docs

# The cache of `cargo xtask real build`, too.
CACHE = $(or $(PLIMSOLL_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/plimsoll)
MDBOOK_VERSION := 0.5.4
MDBOOK_ROOT = $(CACHE)/mdbook-$(MDBOOK_VERSION)
MDBOOK = $(MDBOOK_ROOT)/bin/mdbook
SITE := target/site
REPOSITORY := https://github.com/plimsoll/plimsoll/blob/main

# mdBook is not ours to lint.
docs: export RUSTC_WORKSPACE_WRAPPER :=

# Pages are copied: links that leave docs/ lead to the repository there, and the list of pages gets those of all triggers.
docs: ## Build the documentation as a site in target/site/book (installs mdBook into the cache the first time: 5 min on two cores).
	@[ -x $(MDBOOK) ] || { \
		echo "mdBook $(MDBOOK_VERSION) is not installed: installing it into $(MDBOOK_ROOT)"; \
		$(CARGO) install --locked --quiet --version $(MDBOOK_VERSION) --root $(MDBOOK_ROOT) mdbook; \
	}
	@rm -rf $(SITE) && mkdir -p $(SITE) && cp -R docs/. $(SITE)
	@sed --in-place 's|](\.\./|]($(REPOSITORY)/|g' $(SITE)/*.md
	@sed --in-place 's|](\.\./\.\./|]($(REPOSITORY)/|g' $(SITE)/*/*.md
	@cd docs/scalers && ls *.md | sed '/README/d; s|^\(.*\)\.md$$|  - [\1](scalers/\1.md)|' >../../$(SITE)/triggers
	@sed '/(scalers.README.md)/r $(SITE)/triggers' docs/SUMMARY.md >$(SITE)/SUMMARY.md && rm $(SITE)/triggers
	@$(MDBOOK) build $(SITE)
	@echo "$(SITE)/book/index.html"
