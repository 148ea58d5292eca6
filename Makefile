# `make help` lists what can be made. `make test` is the whole check, on a fresh machine too.

.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

# The linter and the formatters live in their own module file, so that go.mod lists only what callfan needs.
TOOL := go tool -modfile=tools/tools.mod
PYTHON ?= python3
PYTHON_VENV := sdk/python/.venv
TYPESCRIPT := sdk/typescript
JAVA := sdk/java
RUST := sdk/rust
SAMPLES := test/samples
PEERS := test/peers
GREETERS := examples/languages
BENCH_LANGUAGES := test/bench/languages
BENCH_FLAGS ?=
RUST_PROFILE ?= release
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# Tests start server processes, which the test cache does not see: -count=1 runs them every time. The linters vet, too.
TESTFLAGS ?= -race -p 2 -count=1 -vet=off -timeout 15m
PACKAGES ?= ./...
BENCH ?= .
# How long `make chaos` asks for calls and makes faults, and the seed of both; 0 draws one.
CHAOS_TIME ?= 30m
SEED ?= 0
# How often `make crash-runs` kills.
KILLS ?= 250
BUG ?=

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## Install what the tests need beside Go: redis-server, jq, a C compiler, Python and Node (by apt, as root)
	@missing=(); \
	command -v redis-server >/dev/null || missing+=(redis-server); \
	command -v jq >/dev/null || missing+=(jq); \
	command -v gcc >/dev/null || command -v clang >/dev/null || missing+=(gcc libc6-dev); \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing+=(python3 python3-venv); \
	command -v node >/dev/null || missing+=(nodejs); \
	command -v npm >/dev/null || missing+=(npm); \
	if (( $${#missing[@]} == 0 )); then exit 0; fi; \
	if [[ $$(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then \
		echo "missing for the tests: $${missing[*]}; remedy: sudo apt-get install $${missing[*]}" >&2; exit 1; \
	fi; \
	apt-get update -qq; \
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$${missing[@]}"

.PHONY: build
build: ## Build the three programs into bin/
	CGO_ENABLED=0 go build -o bin/ ./cmd/...

.PHONY: test
test: deps fmt-check lint build samples-deps peers-deps ## Check everything: format, lint, build, all tests with the race detector, the SDKs, and the short chaos run
	go build -o bin/testcount ./tools/testcount
	bin/testcount $(TESTFLAGS) $(PACKAGES)
	$(MAKE) --no-print-directory test-others

SUITES := python typescript java rust languages helm images

# The chaos run mostly waits, in network namespaces of its own, so it goes on beside the other suites; what it prints follows them.
.PHONY: test-others
test-others: build
	@$(MAKE) --no-print-directory chaos-short >bin/chaos-short.log 2>&1 & chaos=$$!; code=0; \
	for suite in $(SUITES); do $(MAKE) --no-print-directory test-$$suite || { code=$$?; break; }; done; \
	if (( code != 0 )); then kill $$chaos 2>/dev/null || true; fi; \
	wait $$chaos || code=$$(( code ? code : $$? )); \
	cat bin/chaos-short.log; exit $$code

# The environment is made anew when the dependencies change. Packages come from PyPI.
$(PYTHON_VENV)/installed: sdk/python/pyproject.toml | deps
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "the Python SDK needs Python 3.11 or newer; remedy: install it and say make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check -e 'sdk/python[test]'
	touch $@

.PHONY: test-python
test-python: build $(PYTHON_VENV)/installed ## Check the Python SDK: format, lint, types, tests, and the conformance suite
	CGO_ENABLED=0 go build -o bin/ github.com/nats-io/nats-server/v2
	cd sdk/python && .venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/mypy && .venv/bin/pytest -q

# What package-lock.json names, from the npm registry.
$(TYPESCRIPT)/node_modules/.package-lock.json: $(TYPESCRIPT)/package-lock.json | deps
	@node -e 'process.exit(Number(process.versions.node.split(".")[0] < 20))' || \
		{ echo "the TypeScript SDK needs Node 20 or newer, and node is $$(node --version); remedy: install it from https://nodejs.org and put it first in PATH" >&2; exit 1; }
	cd $(TYPESCRIPT) && npm ci --no-audit --no-fund
	touch $@

.PHONY: test-typescript
test-typescript: build $(TYPESCRIPT)/node_modules/.package-lock.json ## Check the TypeScript SDK: types, tests, and the conformance suite
	cd $(TYPESCRIPT) && npm test

.PHONY: deps-java
deps-java: ## Install what the Java SDK needs: a JDK and Maven (by apt, as root)
	@missing=(); \
	command -v javac >/dev/null || missing+=(default-jdk-headless); \
	command -v mvn >/dev/null || missing+=(maven); \
	if (( $${#missing[@]} > 0 )); then \
		if [[ $$(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then \
			echo "missing for the Java SDK: $${missing[*]}; remedy: sudo apt-get install $${missing[*]}" >&2; exit 1; \
		fi; \
		apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$${missing[@]}"; \
	fi; \
	version=$$(javac -version 2>&1); major=$${version#javac }; major=$${major%%.*}; \
	if (( major < 17 )); then \
		echo "the Java SDK needs a JDK 17 or newer, and javac is $$version; remedy: install one, put it first in PATH and set JAVA_HOME" >&2; exit 1; \
	fi

# The libraries come from Maven Central. The guide's test installs the SDK into the local repository of Maven. A skipped test counts as failed.
.PHONY: test-java
test-java: build deps-java ## Check the Java SDK: tests, the guide, and the conformance suite
	@rm -rf $(JAVA)/target/surefire-reports; code=0; \
	MAVEN_OPTS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' mvn --batch-mode --no-transfer-progress --file $(JAVA) test || code=$$?; \
	echo; cat $(JAVA)/target/surefire-reports/TEST-*.xml 2>/dev/null | awk -F'"' ' \
		/<testsuite / { for (i = 1; i < NF; i += 2) { if ($$i ~ / tests=$$/) all += $$(i + 1); if ($$i ~ / (errors|skipped|failures)=$$/) failed += $$(i + 1) } } \
		END { print all - failed " passed, " failed + (all == 0) " failed" }'; \
	exit $$code

# Where rustup puts cargo, should the shell not know.
CARGO := PATH="$$PATH:$$HOME/.cargo/bin" cargo

# Debian has rustup from 13 on; the Rust compilers of Debian itself are too old.
.PHONY: deps-rust
deps-rust: ## Install what the Rust SDK needs: cargo, by rustup (by apt, as root)
	@export PATH="$$PATH:$$HOME/.cargo/bin"; remedy='remedy: install it by https://rustup.rs, or say: rustup update stable'; \
	if ! command -v cargo >/dev/null && [[ $$(id -u) == 0 ]] && command -v apt-get >/dev/null; then \
		apt-get update -qq; \
		if apt-cache show rustup >/dev/null 2>&1; then \
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rustup; \
			rustup toolchain install stable --profile minimal; \
		fi; \
	fi; \
	if ! version=$$(cargo --version 2>/dev/null); then echo "missing for the Rust SDK: cargo; $$remedy" >&2; exit 1; fi; \
	minor=$${version#cargo 1.}; minor=$${minor%%.*}; \
	if ! (( minor >= 89 )); then echo "the Rust SDK needs Rust 1.89 or newer, and cargo is $$version; $$remedy" >&2; exit 1; fi; \
	for tool in fmt clippy; do \
		cargo $$tool --version >/dev/null 2>&1 || rustup component add $${tool/fmt/rustfmt} || { echo "missing for the Rust SDK: cargo $$tool; remedy: rustup component add $${tool/fmt/rustfmt}" >&2; exit 1; }; \
	done

# The libraries come from crates.io. An ignored test counts as failed.
.PHONY: test-rust
test-rust: build deps-rust ## Check the Rust SDK: format, lint, tests, the guide, and the conformance suite
	cd $(RUST) && $(CARGO) fmt --check && $(CARGO) clippy --quiet --locked --all-targets --features opentelemetry -- -D warnings
	@cd $(RUST); code=0; $(CARGO) test --locked --features opentelemetry 2>&1 | tee target/tests.log || code=$$?; \
	echo; awk '/^test result: / { passed += $$4; failed += $$6 + $$8 } END { print passed + 0 " passed, " failed + (passed == 0) " failed" }' target/tests.log; \
	exit $$code

# The official SDKs, for the published samples in test/samples.
$(SAMPLES)/javascript/node_modules/.package-lock.json: $(SAMPLES)/javascript/package-lock.json | deps
	cd $(SAMPLES)/javascript && npm ci --no-audit --no-fund
	touch $@

$(SAMPLES)/python/.venv/installed: $(SAMPLES)/python/requirements.txt | deps
	$(PYTHON) -m venv --clear $(SAMPLES)/python/.venv
	$(SAMPLES)/python/.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(SAMPLES)/java/target/classpath: $(SAMPLES)/java/pom.xml | deps-java
	mvn --batch-mode --no-transfer-progress --quiet --file $(SAMPLES)/java dependency:build-classpath
	touch $@

.PHONY: samples-deps
samples-deps: $(SAMPLES)/javascript/node_modules/.package-lock.json $(SAMPLES)/python/.venv/installed $(SAMPLES)/java/target/classpath ## Fetch OpenAI's SDKs for JavaScript, Python and Java, which test/samples needs

# Servers of the Responses API that others wrote.
$(PEERS)/aimock/node_modules/.package-lock.json: $(PEERS)/aimock/package-lock.json | deps
	cd $(PEERS)/aimock && npm ci --no-audit --no-fund
	touch $@

$(PEERS)/llm-mock-api/.venv/installed: $(PEERS)/llm-mock-api/requirements.txt | deps
	$(PYTHON) -m venv --clear $(PEERS)/llm-mock-api/.venv
	$(PEERS)/llm-mock-api/.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

.PHONY: peers-deps
peers-deps: $(PEERS)/aimock/node_modules/.package-lock.json $(PEERS)/llm-mock-api/.venv/installed ## Fetch the mock servers from npm and PyPI, which test/peers needs

# The executors of `callfan demo --languages`: each SDK as it is here, and the example on it.
.PHONY: languages
languages: language-go language-python language-typescript language-java language-rust ## Prepare the executors that `callfan demo --languages` starts: each SDK and its example

.PHONY: language-go
language-go:
	CGO_ENABLED=0 go build -o $(GREETERS)/go/build/greet ./$(GREETERS)/go

.PHONY: language-python
language-python: $(PYTHON_VENV)/installed

$(TYPESCRIPT)/dist/index.js: $(TYPESCRIPT)/node_modules/.package-lock.json $(shell find $(TYPESCRIPT)/src -name '*.ts')
	cd $(TYPESCRIPT) && npm run --silent build
	touch $@

# The example finds its packages where npm would have put them.
.PHONY: language-typescript
language-typescript: $(TYPESCRIPT)/dist/index.js
	mkdir -p $(GREETERS)/typescript/node_modules
	ln -sfn ../../../../$(TYPESCRIPT) $(GREETERS)/typescript/node_modules/callfan
	ln -sfn ../../../../$(TYPESCRIPT)/node_modules/zod $(GREETERS)/typescript/node_modules/zod
	$(TYPESCRIPT)/node_modules/.bin/tsc -p $(GREETERS)/typescript

# What a program on the SDK needs; slf4j-simple is among what tests need.
$(JAVA)/target/classpath: $(JAVA)/pom.xml $(shell find $(JAVA)/src/main -name '*.java') | deps-java
	mvn --quiet --batch-mode --no-transfer-progress --file $(JAVA) compile dependency:build-classpath \
		-Dmdep.outputFile=target/classpath -DincludeScope=test -DexcludeGroupIds=io.opentelemetry,org.junit.jupiter,org.junit.platform,org.opentest4j,org.apiguardian
	touch $@

.PHONY: language-java
language-java: $(JAVA)/target/classpath
	javac -Xlint:all,-processing,-classfile -cp "$(JAVA)/target/classes:$$(cat $(JAVA)/target/classpath)" -d $(GREETERS)/java/build $(GREETERS)/java/Greet.java

# The libraries are those that the tests of the SDK have compiled.
.PHONY: language-rust
language-rust: deps-rust
	CARGO_TARGET_DIR=$(RUST)/target $(CARGO) build --quiet --locked --manifest-path $(GREETERS)/rust/Cargo.toml
	mkdir -p $(GREETERS)/rust/build
	cp $(RUST)/target/debug/greet $(GREETERS)/rust/build/greet

.PHONY: test-languages
test-languages: build languages ## Check `callfan demo --languages`, and that `make bench-languages` works
	go build -o bin/testcount ./tools/testcount
	bin/testcount $(TESTFLAGS) -tags languages -run '^TestLanguages' ./cmd/callfan
	$(MAKE) --no-print-directory bench-languages RUST_PROFILE=dev BENCH_FLAGS='-rounds 1 -calls 100 -time 1s'

KUBE_VERSION := $(shell sed -n 's|.*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' tools/kube/go.mod)
KUBE_CACHE = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/callfan
KUBE_APISERVER = $(KUBE_CACHE)/kube-apiserver-$(KUBE_VERSION)
KUBE_LDFLAGS = -s -w -X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION) \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBE_VERSION)))

# Built beside and renamed, so that a build that is cut off leaves nothing that looks like the program.
$(KUBE_APISERVER):
	@mkdir -p $(@D)
	@echo "building the API server of Kubernetes $(KUBE_VERSION), once for each machine and version: about 10 minutes on two cores"
	cd tools/kube && CGO_ENABLED=0 go build -trimpath -ldflags '$(KUBE_LDFLAGS)' -o $@.partial k8s.io/kubernetes/cmd/kube-apiserver
	mv $@.partial $@

.PHONY: deps-helm
deps-helm: $(KUBE_APISERVER) ## Install what the chart's tests need: etcd (by apt, as root) and the API server of Kubernetes (built from its Go module)
	@if ! command -v etcd >/dev/null; then \
		if [[ $$(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then \
			echo "missing for the chart's tests: etcd; remedy: sudo apt-get install etcd-server" >&2; exit 1; \
		fi; \
		apt-get update -qq; \
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends etcd-server; \
	fi

# A Go module of its own, so that Helm and Kubernetes stay out of go.mod.
.PHONY: test-helm
test-helm: deps deps-helm ## Check the Helm chart: lint, what it renders and refuses, Kubernetes' schemas, a real API server, and its pods as processes
	go build -o bin/testcount ./tools/testcount
	cd helm && go vet ./... && ../bin/testcount -count=1 -timeout 15m ./...

# A Go module of its own, for the parser of Dockerfiles.
.PHONY: test-images
test-images: ## Check the Dockerfiles: their form, and the steps of their builds in a clean directory
	go build -o bin/testcount ./tools/testcount
	cd docker && go vet ./... && ../bin/testcount -count=1 ./...

.PHONY: quick
quick: samples-deps peers-deps ## Run all tests without the race detector and without lint
	go test $(PACKAGES)

.PHONY: fmt
fmt: ## Format the code
	$(TOOL) golangci-lint fmt

.PHONY: fmt-check
fmt-check: ## Show what is not formatted, and fail
	$(TOOL) golangci-lint fmt --diff

.PHONY: vet
vet: ## Run go vet
	go vet $(PACKAGES)

.PHONY: lint
lint: ## Run the linters of .golangci.yml
	$(TOOL) golangci-lint run $(PACKAGES)

.PHONY: cross
cross: ## Build the three programs for linux, darwin and windows on amd64 and arm64 into bin/OS-ARCH/
	@for platform in $(PLATFORMS); do \
		os=$${platform%/*}; arch=$${platform#*/}; echo "build $$platform"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -o "bin/$$os-$$arch/" ./cmd/...; \
	done

.PHONY: bench
bench: ## Run the benchmarks; BENCH selects them by a regular expression
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 30m $(PACKAGES)

# Each executor is measured in turns, for three rounds of 10 s at most. Linux only.
.PHONY: bench-languages
bench-languages: bench-languages-build ## Measure the executors of all languages, with a handler that does nothing; BENCH_FLAGS='-only python -rounds 1'
	bin/bench-languages $(BENCH_FLAGS)

.PHONY: bench-languages-build
bench-languages-build: build languages
	CGO_ENABLED=0 go build -o bin/ github.com/nats-io/nats-server/v2
	CGO_ENABLED=0 go build -o bin/bench-languages ./$(BENCH_LANGUAGES)
	CGO_ENABLED=0 go build -o bin/bench-bare ./$(BENCH_LANGUAGES)/bare
	CGO_ENABLED=0 go build -o bin/bench-go ./$(BENCH_LANGUAGES)/noop/go
	CGO_ENABLED=0 go build -o bin/bench-mcp ./$(BENCH_LANGUAGES)/noop/mcp
	javac -cp "$(JAVA)/target/classes:$$(cat $(JAVA)/target/classpath)" -d bin/bench-java $(BENCH_LANGUAGES)/noop/java/Noop.java
	CARGO_TARGET_DIR=$(RUST)/target $(CARGO) build --quiet --locked --profile $(RUST_PROFILE) --manifest-path $(BENCH_LANGUAGES)/noop/rust/Cargo.toml
	cp $(RUST)/target/$(RUST_PROFILE:dev=debug)/noop bin/bench-rust

.PHONY: chaos
chaos: deps ## Prove by fault injection that nothing is lost or doubled; CHAOS_TIME=3m, SEED=n, BUG=no-fence (docs/chaos.md)
	go build -o bin/chaos ./test/chaos/run
	bin/chaos -time $(CHAOS_TIME) -seed $(SEED) $(if $(BUG),-bug $(BUG))

# At two thirds of the usual rate, and with time to settle, for slow machines. It judges what is lost and doubled, no times.
.PHONY: chaos-short
chaos-short: deps ## Make the 3 minutes of chaos that are a part of `make test`
	go build -o bin/chaos ./test/chaos/run
	bin/chaos -time 3m -rate 8 -settle 6m -seed $(SEED)

# Linux and other Unix. A dispatcher is killed about once a second.
.PHONY: crash-runs
crash-runs: deps ## Kill dispatchers in the midst of runs of the Responses API; KILLS=250, SEED=n
	go test -count=1 -timeout 60m -v ./test/runcrash -args -kills $(KILLS) -seed $(SEED)

.PHONY: chaos-bugs
chaos-bugs: deps ## Show that the check of `make chaos` catches each planted fault
	go build -o bin/chaos ./test/chaos/run
	@for bug in ack-before-save no-fence no-claim; do \
		code=0; bin/chaos -time 75s -settle 45s -seed $(SEED) -bug $$bug || code=$$?; \
		if [[ $$code != 1 ]]; then echo "the planted fault $$bug was not caught (exit code $$code)" >&2; exit 1; fi; \
	done

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin $(PYTHON_VENV) $(TYPESCRIPT)/node_modules $(TYPESCRIPT)/dist $(TYPESCRIPT)/build $(JAVA)/target $(RUST)/target \
		$(SAMPLES)/javascript/node_modules $(SAMPLES)/python/.venv $(SAMPLES)/java/target \
		$(PEERS)/aimock/node_modules $(PEERS)/llm-mock-api/.venv \
		$(GREETERS)/typescript/node_modules $(GREETERS)/*/build
