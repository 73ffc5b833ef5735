# KEDA's scalers and ours ask the same servers. They are fetched once, so this is not a part of `make test`.
.PHONY: test-scalers
export PLIMSOLL_SCRIPT

# `make test-scalers PLIMSOLL_SCRIPT=kafka` runs only the scripts with this in their name.
test-scalers: programs ## KEDA's scalers and ours ask the same servers in the same states (25 min the first time; needs Go, Java, Maven, Node, Python).
	@$(CARGO) test $(WORKSPACE) --test scalers -- --ignored --nocapture same_server
