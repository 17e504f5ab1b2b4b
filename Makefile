# Everything that a newcomer, a developer or CI does has a name here.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# Tools are pinned in tools.mod and built into the cache of the Go toolchain.
TOOL := $(GO) tool -modfile=tools.mod
# The control plane of tests and demo: built once, into a cache of its own.
ASSETS = $(if $(KUBEBUILDER_ASSETS),$(KUBEBUILDER_ASSETS),$$(hack/k8s/build.sh))
SEEDS ?= 20000
FUZZTIME ?= 60s
SIMS ?= ./rollout/sim ./internal/zones/sim ./internal/fleet/sim
RINGS := config zones plans
# What the race detector runs: the engine and what rings share, and tests of the rings
# in which two managers work at the same time. A release runs all tests of the rings.
RACE_PURE := ./rollout $(if $(wildcard internal/ring),./internal/ring)
RACE_RINGS := ./internal/config ./internal/zones ./internal/plans ./internal/fleet/hub
RACE ?= ^TestFaultTwo

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Watch a config change reach running Pods, on a control plane that it starts
	assets=$(ASSETS); KUBEBUILDER_ASSETS=$$assets bin/spillway demo

.PHONY: demo-fleet
demo-fleet: build ## Watch a Module roll over three clusters, on four API servers that it starts
	assets=$(ASSETS); KUBEBUILDER_ASSETS=$$assets bin/spillway demo --fleet

.PHONY: test
test: ## Run all tests, on control planes that they start
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	log=$$(mktemp); trap "rm -f $$log" EXIT; \
	$(GO) test -p 2 -timeout 15m ./... | tee $$log; \
	echo "The slowest packages:"; awk '$$1 == "ok" && $$3 ~ /s$$/ {printf "%8s  %s\n", $$3, $$2}' $$log | sort -rn | head -10

.PHONY: build
build: ## Build bin/spillway, one static file
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/spillway ./cmd/spillway
	@$(GO) run ./hack/static bin/spillway

.PHONY: lint
lint: ## Run the linters, and find words that the project does not use
	$(TOOL) golangci-lint run
	$(GO) run ./hack/words

.PHONY: verify
verify: ## Check that generated files are up to date, and that the modules are tidy
	hack/verify.sh

.PHONY: generate
generate: ## Generate permissions, kinds, deep copies, and the pages of reasons, of lint and of the commands
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) controller-gen crd paths=./api/spillway/v1alpha1 output:crd:dir=internal/manifests/generated/zones
	$(TOOL) controller-gen crd paths=./api/kudo/v1beta1 output:crd:dir=internal/manifests/generated/plans
	$(TOOL) controller-gen crd paths=./api/zones/v1 output:crd:dir=internal/manifests/generated/zones
	$(TOOL) controller-gen crd paths=./api/fleet/v1alpha1 output:crd:dir=internal/manifests/generated/fleet
	mkdir -p internal/manifests/generated/assemblage
	cd internal/manifests/generated && mv zones/spillway.dev_{modulerevisions,rolloutgates}.yaml fleet/ && mv fleet/fleet.squaremo.dev_assemblages.yaml assemblage/
	for ring in $(RINGS); do \
	  $(TOOL) controller-gen rbac:roleName=spillway-$$ring paths=./internal/$$ring/... output:rbac:dir=internal/manifests/generated/$$ring; \
	done
	$(TOOL) controller-gen rbac:roleName=spillway-fleet paths=./internal/fleet/hub output:rbac:dir=internal/manifests/generated/fleet
	$(TOOL) controller-gen rbac:roleName=spillway-assemblage paths=./internal/fleet/agent output:rbac:dir=internal/manifests/generated/assemblage
	$(TOOL) controller-gen rbac:roleName=spillway-hub paths=./internal/fleet/proxy output:rbac:dir=internal/manifests/generated/hub
	$(GO) run ./hack/reasons
	$(GO) run ./internal/lint/guide docs/lint.md
	$(GO) run ./hack/docs

.PHONY: k8s
k8s: ## Build the control plane for tests and demo; the last line is its folder
	@hack/k8s/build.sh

.PHONY: flux
flux: ## Build Flux's kustomize-controller for the tests of the fleet; the last line is its folder
	@hack/flux/build.sh

.PHONY: bench
bench: ## Measure: API calls, ratio to the physical floor, memory
	assets=$(ASSETS); export KUBEBUILDER_ASSETS=$$assets; \
	$(GO) test -tags bench -count=1 -timeout 30m -v ./bench/...

.PHONY: sim
sim: ## Run the engine, the zones and the fleet against many seeded worlds (SEEDS=20000)
	$(GO) test -count=1 -timeout 30m -run Simulation $(SIMS) -seeds=$(SEEDS)

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
	$(GO) test -race -p 1 -timeout 30m -run '$(RACE)' $(RACE_RINGS)

.PHONY: preconditions
preconditions: ## Remove each precondition of internal/ring: a simulation must fail. Do it after a change of internal/ring
	$(GO) test -tags preconditions -count=1 -timeout 30m -v ./internal/ring/preconditions

.PHONY: release-test
release-test: ## Run all that CI runs, and more of what can be run for longer: do it before a release
	SEEDS=50000 FUZZTIME=60s RACE=. .ci/run
	$(MAKE) preconditions

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
