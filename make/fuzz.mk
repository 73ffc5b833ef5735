# Fuzzing, two ways over the same targets (fuzz/src/targets).
.PHONY: fuzz fuzz-short fuzz-long

FUZZ_TARGETS := quantity selector text hpa step state_snapshot passes scenario kubelet adapter_config formula \
	gjson formats responses amqp redis connection_string admission requests watch wire samples_page
# Coverage as cargo-fuzz asks for it. A stable compiler knows these flags, so neither a nightly one nor cargo-fuzz is
# needed; and no sanitizer, because there is no unsafe code to watch.
FUZZ_FLAGS := --cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
	-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
FUZZ_RUN := -timeout=10 -rss_limit_mb=2048 -max_len=65536 -verbosity=0 -print_final_stats=1

fuzz: ## Follow coverage, FUZZ_SECONDS (60) for each target; findings go to fuzz/artifacts (needs a C++ compiler).
	@RUSTFLAGS="$(FUZZ_FLAGS)" $(CARGO) build --locked --package plimsoll-fuzz --target-dir target/fuzz \
		--profile fuzz --features libfuzzer --bins --target $(HOST)
	@set -o pipefail; for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target fuzz/artifacts/$$target; \
		case $$target in text|hpa|scenario) more=examples ;; *) more= ;; esac; \
		echo "fuzz $$target"; \
		target/fuzz/$(HOST)/fuzz/$$target -max_total_time=$(or $(FUZZ_SECONDS),60) $(FUZZ_RUN) \
			-artifact_prefix=fuzz/artifacts/$$target/ fuzz/corpus/$$target fuzz/seeds/$$target $$more 2>&1 \
			| grep -vE '^"|dictionary' || exit 1; \
	done

fuzz-short: ## Change the seeds at random, FUZZ_SECONDS (2) for each target, with nothing but a stable compiler.
	@FUZZ_SECONDS=$(or $(FUZZ_SECONDS),2) $(CARGO) test $(WORKSPACE) --test short

fuzz-long: ## As fuzz-short, with FUZZ_INPUTS (1000000) inputs for each target; TARGET=gjson selects one.
	@FUZZ_INPUTS=$(or $(FUZZ_INPUTS),1000000) $(CARGO) test --release $(WORKSPACE) --test short -- $(TARGET) --nocapture
