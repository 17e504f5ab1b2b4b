# Everything that a newcomer, a developer or CI does has a name here.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# Tools are pinned in tools.mod and built into the cache of the Go toolchain.
TOOL := $(GO) tool -modfile=tools.mod
# It needs another version of a YAML library than the linters, so it is not among them.
ACTIONLINT := v1.7.12
# The control plane of tests and demo: fetched or built once, into a cache of its own.
ASSETS = $(if $(KUBEBUILDER_ASSETS),$(KUBEBUILDER_ASSETS),$$($(GO) run ./hack/controlplane))
SEEDS ?= 20000
FUZZTIME ?= 60s
SIMS ?= ./rollout/sim ./internal/config/sim ./internal/zones/sim ./internal/fleet/sim
RINGS := config zones plans
# What the race detector runs: the engine and what rings share, and tests of the rings
# in which two managers work at the same time. A release runs all tests of the rings.
RACE_PURE := ./rollout $(if $(wildcard internal/ring),./internal/ring)
RACE_RINGS := ./internal/config ./internal/zones ./internal/plans ./internal/fleet/hub ./internal/fleet/agent
RACE ?= ^TestFaultTwo

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Watch a config change reach running Pods, on a control plane that it starts
	assets=$(ASSETS); KUBEBUILDER_ASSETS=$$assets bin/spillway demo

.PHONY: picture
picture: build ## Record the demo as the moving picture of README and the site, docs/pictures/demo.svg
	assets=$(ASSETS); DEMO_ONCE=1 KUBEBUILDER_ASSETS=$$assets bin/spillway demo | $(GO) run ./hack/screen docs/pictures/demo.svg

.PHONY: demo-fleet
demo-fleet: build ## Watch a Module roll over three clusters, on four API servers that it starts
	assets=$(ASSETS); KUBEBUILDER_ASSETS=$$assets bin/spillway demo --fleet

# Not by "go run", which does not pass on the signal that ends a run.
RUN_TESTS := $(GO) build -o bin/run-tests ./hack/test && exec bin/run-tests

.PHONY: test
test: ## Run all tests on one control plane; what fails is run five times alone, and reported as flaky or broken
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(RUN_TESTS) -p 2 -timeout 15m -- ./...

.PHONY: stress
stress: ## Run a test many times while all processors are busy (TEST=TestName PKG=./internal/config N=200)
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(RUN_TESTS) stress $(or $(N),200) -run '$(TEST)' -- '$(PKG)'

.PHONY: test-node
test-node: ## Run the stories on real Pods: on a node that it starts (Linux, root, gcc), or on a cluster (CLUSTER=KUBECONFIG IMAGE=NAME)
	$(if $(CLUSTER),,$(GO) run ./hack/node check && $(GO) run ./hack/node >/dev/null) # first: it may take longer than a test may
	$(if $(CLUSTER),,assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets;) \
	  IMAGE='$(IMAGE)' SPILLWAY_TEST_KUBECONFIG='$(if $(CLUSTER),$(abspath $(CLUSTER)))' \
	  $(GO) test -tags node -count=1 -timeout 15m ./test/node

.PHONY: build
build: ## Build bin/spillway, one static file
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/spillway ./cmd/spillway

.PHONY: release
release: ## Write all files of a release to dist/ (VERSION=v0.1.0)
	@cd hack/release && $(GO) build -o ../../bin/release .
	bin/release build --version '$(VERSION)' --out dist

.PHONY: release-push
release-push: ## Push the images and the chart of dist/ and sign them (TO=REPOSITORY CHARTS_TO=REPOSITORY/spillway KEY=cosign.key, or COSIGN=cosign to sign as the workflow); tags are set last
	bin/release push --dist dist $(if $(TO),--to '$(TO)') $(if $(CHARTS_TO),--charts-to '$(CHARTS_TO)') $(if $(KEY),--key '$(KEY)') $(if $(COSIGN),--keyless '$(COSIGN)')

.PHONY: release-check
release-check: ## Test the tools of releases: make a release twice, push it to a registry on loopback, verify it
	cd hack/release && $(GO) test -count=1 -timeout 30m ./... # what it compiles is not in the key of the cache

.PHONY: monitoring-check
monitoring-check: ## Test alerts with promtool, also those published for rollout-operator on what a manager is recorded to serve, and each ring with a real Prometheus that gates ask and dashboards show; the first time it compiles Prometheus
	cd test/monitoring && mkdir -p ../../bin && $(GO) build -o ../../bin/ github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool # first: it may take longer than a test may
	cd test/monitoring && $(GO) test -timeout 30m ./...
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets PROMETHEUS=$(CURDIR)/bin/prometheus; \
	$(GO) test -tags prometheus -count=1 -run '^(TestPrometheus|TestPublishedAlertsAndPanels)$$' ./internal/config ./internal/zones ./internal/plans ./internal/fleet/hub ./internal/fleet/agent

.PHONY: identity-check
identity-check: ## Log in to the dashboard through a real Dex, and through oauth2-proxy before it; the first time it compiles both, and needs a C compiler
	mkdir -p bin && cd test/identity && $(GO) mod tidy -diff && CGO_ENABLED=1 $(GO) build -o ../../bin/ github.com/dexidp/dex/cmd/dex github.com/oauth2-proxy/oauth2-proxy/v7
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets DEX=$(CURDIR)/bin/dex OAUTH2_PROXY=$(CURDIR)/bin/oauth2-proxy; \
	$(GO) test -tags identity -count=1 -timeout 10m -run '^(TestDex|TestOAuth2Proxy)' ./internal/cli

.PHONY: upgrade-test
upgrade-test: ## Upgrade over rollouts under way, and back, by the command and by the real Helm; run the FIPS variant (PREVIOUS=commit)
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(GO) test -tags upgrade -count=1 -timeout 30m ./test/upgrade

.PHONY: tools-test
tools-test: ## Update a tracked workload again and again by the real Helm and by Flux's kustomize-controller: neither removes the hash
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(GO) test -tags tools -count=1 -timeout 30m ./test/tools

# The live tests of all rings. On an older Kubernetes those of pins by policies skip themselves.
COMPAT := ./internal/zones ./internal/config ./internal/plans ./internal/zones/scaling ./internal/zones/guard ./internal/fleet/hub ./internal/fleet/agent ./internal/fleet/proxy ./internal/manager ./internal/gates ./internal/admission/... ./internal/manifests
# These count writes, or name fields, of Kubernetes 1.37: maxUnavailable of StatefulSets, and what their controller does itself.
NEWER := ^(TestStrategies|TestWritesAreCounted|TestRefusedWritesAreTold|TestARolloutUnderADisruptionBudget)$$

.PHONY: compat
compat: build ## Run the live tests of all rings, and the trials, on an older Kubernetes, which is built once (K8S=1.30.14)
	assets=$$($(GO) run ./hack/controlplane --kubernetes '$(or $(K8S),$(error name a version, as in make compat K8S=1.30.14))'); export KUBEBUILDER_ASSETS=$$assets; \
	$(GO) build -o bin/run-tests ./hack/test; bin/run-tests -p 2 -timeout 30m -skip '$(NEWER)' -- $(COMPAT); \
	BINARY='$(CURDIR)/bin/spillway' $(GO) test -v -count=1 -timeout 30m ./test/trials -every | grep -v '^ *\(===\|--- PASS\)'

.PHONY: lint
lint: ## Run the linters, also of workflows, and find words that the project does not use
	$(TOOL) golangci-lint run
	cd hack/release && $(GO) tool -modfile=../../tools.mod golangci-lint run --allow-parallel-runners --config=../../.golangci.yml
	cd test/monitoring && $(GO) tool -modfile=../../tools.mod golangci-lint run --allow-parallel-runners --config=../../.golangci.yml
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT) -shellcheck= -pyflakes=
	$(GO) run ./hack/words

.PHONY: verify
verify: ## Check that generated files are up to date, and that the modules are tidy
	hack/verify.sh

.PHONY: generate
generate: ## Generate permissions, kinds, deep copies, the chart, and the pages of the reference
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) controller-gen crd paths=./api/spillway/v1alpha1 output:crd:dir=charts/spillway/generated/zones
	$(TOOL) controller-gen crd paths=./api/kudo/v1beta1 output:crd:dir=charts/spillway/generated/plans
	$(TOOL) controller-gen crd paths=./api/zones/v1 output:crd:dir=charts/spillway/generated/zones
	$(TOOL) controller-gen crd paths=./api/fleet/v1alpha1 output:crd:dir=charts/spillway/generated/fleet
	mkdir -p charts/spillway/generated/{assemblage,gates,notify}
	cd charts/spillway/generated && mv zones/spillway.dev_{modulerevisions,clusterbudgets}.yaml fleet/ && mv zones/spillway.dev_{rolloutgates,gatetemplates}.yaml gates/ && mv zones/spillway.dev_notifiers.yaml notify/ && mv zones/spillway.dev_{configpolicies,clusterconfigpolicies,configrollouts}.yaml config/ && mv fleet/fleet.squaremo.dev_assemblages.yaml assemblage/
	for ring in $(RINGS); do \
	  $(TOOL) controller-gen rbac:roleName=spillway-$$ring paths=./internal/$$ring/... output:rbac:dir=charts/spillway/generated/$$ring; \
	done
	for part in gates notify; do \
	  $(TOOL) controller-gen rbac:roleName=spillway-$$part paths=./internal/$$part/... output:rbac:dir=charts/spillway/generated/$$part; \
	done
	$(TOOL) controller-gen rbac:roleName=spillway-fleet paths=./internal/fleet/hub output:rbac:dir=charts/spillway/generated/fleet
	$(TOOL) controller-gen rbac:roleName=spillway-assemblage paths=./internal/fleet/agent output:rbac:dir=charts/spillway/generated/assemblage
	$(TOOL) controller-gen rbac:roleName=spillway-dashboard paths=./internal/dashboard/hosted output:rbac:dir=charts/spillway/generated/dashboard
	$(TOOL) controller-gen rbac:roleName=spillway-hub paths=./internal/fleet/proxy output:rbac:dir=charts/spillway/generated/hub
	$(GO) run ./hack/reasons
	$(GO) run ./internal/lint/guide docs/lint.md
	$(GO) run ./hack/docs
	$(TOOL) crd-ref-docs --log-level=ERROR --source-path=api --max-depth=20 --config=hack/docs/kinds.yaml --templates-dir=hack/docs --renderer=markdown --output-path=docs/kinds.md
	$(GO) run ./hack/schemas
	$(GO) run ./hack/monitoring
	$(GO) run ./hack/chart

.PHONY: k8s
k8s: ## Fetch or build the control plane for tests and demo (BUILD=1 insists on building); the last line is its folder
	@$(GO) run ./hack/controlplane $(if $(BUILD),--build)

.PHONY: pin
pin: ## Pin the checksums of the downloads of the control plane; it needs the internet
	$(GO) run ./hack/controlplane pin

.PHONY: flux
flux: ## Build Flux's kustomize-controller for the tests of the fleet; the last line is its folder
	@hack/flux/build.sh

.PHONY: bench
bench: ## Measure: API calls, ratio to the physical floor, memory
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(GO) test -tags bench -count=1 -timeout 30m -v ./bench/...
	$(GO) test -tags bench -count=1 -timeout 30m -v -run TestALargeDirectory ./internal/prove

.PHONY: sim
sim: ## Run the engine and the config, zones and fleet rings against many seeded worlds (SEEDS=20000; a twentieth of that for config)
	WORLDS=$(SEEDS) $(GO) test -timeout 30m -run Simulation $(SIMS)

.PHONY: replay
replay: ## Record what is decided in the worlds of the config, zones and fleet rings, and decide it again: all must be the same
	$(GO) test -count=1 -timeout 30m -v -run '^TestSimulation$$' $(filter ./internal/%,$(SIMS)) -replay | grep -E 'recorded|^ok|FAIL'

.PHONY: trials
trials: ## Try a program from outside (BINARY=bin/spillway), on a control plane that it starts or on a cluster (CLUSTER=KUBECONFIG IMAGE=pause)
	$(if $(BINARY),,$(MAKE) build)
	$(if $(CLUSTER),,assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets;) \
	  BINARY='$(abspath $(or $(BINARY),bin/spillway))' IMAGE='$(IMAGE)' SPILLWAY_TEST_KUBECONFIG='$(if $(CLUSTER),$(abspath $(CLUSTER)))' \
	  $(GO) test -v -count=1 -timeout 30m ./test/trials -every | grep -v '^ *\(===\|--- PASS\)'

.PHONY: mutate
mutate: ## Change a package bit by bit and print what its tests do not notice (PKG=./rollout RUN=TestRules ARGS=)
	$(GO) run ./hack/mutate $(if $(RUN),-run '$(RUN)') $(ARGS) $(PKG)

.PHONY: race
race: ## Run the engine, and tests with two managers, with the race detector
	$(GO) test -race -timeout 15m $(RACE_PURE)
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(RUN_TESTS) -race -p 1 -timeout 30m -run '$(RACE)' -- $(RACE_RINGS)

.PHONY: preconditions
preconditions: ## Remove each precondition of internal/ring: a simulation must fail. Do it after a change of internal/ring
	$(GO) test -tags preconditions -count=1 -timeout 30m -v ./internal/ring/preconditions

.PHONY: corpus
corpus: ## Put defects into the engine and the rings, one after another: spillway prove must find each
	$(GO) test -tags corpus -count=1 -timeout 60m -run TestCorpus -v ./internal/prove

.PHONY: release-test
release-test: ## Run all that CI runs, and more of what can be run for longer: do it before a release
	AGAIN=1 SEEDS=50000 FUZZTIME=60s RACE=. FULL=1 .ci/run
	$(MAKE) preconditions
	$(MAKE) corpus
	$(MAKE) replay
	$(MAKE) upgrade-test
	$(MAKE) tools-test
	$(MAKE) monitoring-check
	$(MAKE) identity-check

.PHONY: public
public: ## Lint and simulate manifests that other projects publish, as the tests do, and print how long each takes
	$(GO) test -count=1 -v ./test/public

.PHONY: fault
fault: ## Run the fault tests: the manager stops before and after every write in turn
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(GO) test -count=1 -timeout 20m -v -run Fault ./internal/...

.PHONY: fuzz
fuzz: ## Fuzz the code that reads what users write (FUZZTIME=60s each)
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z]*' internal | sort | while IFS=: read -r file func; do \
	  echo "$${func#func } in $$(dirname "$$file")"; \
	  $(GO) test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")" || exit 1; \
	done

.PHONY: site
site: ## Build the documentation site into dist/site; it needs node and npm
	cd site && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error && npm run build

.PHONY: dashboard-look
dashboard-look: ## Look at pages of a dashboard in Chromium, as a reader does (ADDRESS=what spillway dashboard prints PAGES='/next /past')
	cd site && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error && node dashboard/look.mjs '$(ADDRESS)' $(PAGES)

.PHONY: dashboard-test
dashboard-test: ## Look at the dashboard of a story of all rings in Chromium, and steer by the keyboard; it needs node and npm (CHROMIUM=path)
	cd site && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(GO) test -tags browser -count=1 -timeout 15m -v ./test/dashboard

.PHONY: screenshots
screenshots: ## Make the pictures of the dashboard for the documentation, docs/pictures/dashboard-*.webp
	PICTURES='$(CURDIR)/docs/pictures' $(MAKE) dashboard-test

.PHONY: site-test
site-test: site ## Look at every page of the site in Chromium: scripts, anchors, search, accessibility (CHROMIUM=path)
	@[ -n "$${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome >/dev/null || { \
	  echo "install Chromium (Debian: apt-get install chromium), or name it in CHROMIUM" >&2; exit 1; }
	cd site && npm test
