# Run `make` to see what can be done here.

GO       ?= go
ADDR     ?= localhost:8080
PORT     ?= 4566
FUZZTIME ?= 30s
TARGET   ?= dev
# Of the functions and workers: that of AWS's cheaper machines, or this one's for an emulator.
ifeq ($(TARGET),emulator)
ARCH     ?= $(shell $(GO) env GOARCH)
else
ARCH     ?= arm64
endif
STACKS   ?= --all
# Stacks that are named go alone: without --exclusively the CDK command deploys those before them, too, and destroys
# those after them.
QUOTED    = $(foreach s,$(STACKS),'$(s)') $(if $(filter-out --all,$(STACKS)),--exclusively)
ISSUER   ?=
AUDIENCE ?=
# More of what a target may be told, such as SETTINGS='mail=oncall@example.com schedule_quota=5000';
# infra/target says what there is.
SETTINGS ?=
# Where all commands go, bootstrap as deploy: REGION of the environment or of the AWS profile, unless
# it is said; ACCOUNT "" is that of the credentials.
REGION   ?= $(or $(AWS_REGION),$(AWS_DEFAULT_REGION),$(shell aws configure get region 2>/dev/null),us-east-1)
ACCOUNT  ?=
TENANT   ?=
SCOPES   ?= read write
# What to do where a deploy changes rights and there is no terminal to ask at: never or any-change.
APPROVAL ?=
CONTEXT   = -c target=$(TARGET) -c region=$(REGION) $(if $(ACCOUNT),-c account=$(ACCOUNT)) \
	$(if $(ISSUER),-c issuer="$(ISSUER)") $(if $(AUDIENCE),-c audience="$(AUDIENCE)") $(foreach s,$(SETTINGS),-c "$(s)")

# The linter is pinned in a module of its own, so that its hundred dependencies
# are not ours; it is built once for each pin.
LINTER := .ci/bin/golangci-lint

.DEFAULT_GOAL := help

.PHONY: help
help: ## Shows this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A build with an empty cache is silent for a minute. Without Go, or with one that is too old, the shell's or Go's own
# word says nothing of what to do.
BUILDING = echo "make $@: building; this takes about a minute the first time" >&2; \
	said=$$($(GO) list -m 2>&1) || { echo "make $@: Go $$(sed -n 's/^go //p' go.mod) or later is needed;" \
	"get it from https://go.dev/dl ($$said)" >&2; exit 1; }

# DATA=folder keeps what a laptop holds. SECRETS=file (JSON, or lines of NAME=value) is what payloads may name.
# AT=2027-03-28T00:55:00+01:00 sets its time, SPEED=60 lets time pass that fast while nothing is under way.
LAPTOP = $(if $(DATA),-data '$(DATA)') $(if $(SECRETS),-secrets '$(SECRETS)') $(if $(AT),-at '$(AT)') $(if $(SPEED),-speed '$(SPEED)')

.PHONY: run
run: ## Serves Punctual at ADDR (localhost:8080); needs only Go. DATA=folder keeps what it holds.
	@$(BUILDING)
	@mkdir -p bin && $(GO) build -o bin/local ./workers/cmd/local
	@exec bin/local -addr $(ADDR) $(LAPTOP)

.PHONY: dev
dev: DATA ?= $(if $(AT)$(SPEED),,bin/data)
dev: ## Serves the same, and restarts when a Go file changes; DATA is bin/data.
	@$(BUILDING)
	@mkdir -p bin && $(GO) build -o bin/dev ./workers/cmd/dev
	@exec bin/dev $(patsubst %,-watch %,functions shared workers) ./workers/cmd/local \
		-addr $(ADDR) -drain 2s $(LAPTOP)

.PHONY: seed
seed: ## Puts examples (a schedule, a task, a dag) into the server at ADDR.
	@$(BUILDING)
	@mkdir -p bin && $(GO) build -o bin/local ./workers/cmd/local
	@bin/local -addr $(ADDR) -seed

.PHONY: cli
cli: ## Builds the command line into bin/punctual; shared/docs/cli.md shows its use.
	@$(BUILDING)
	@mkdir -p bin && $(GO) build -o bin/punctual ./workers/cmd/punctual

.PHONY: test
test: setup ## Runs every check and test, with the race detector and a local AWS; installs what it lacks.
	@$(MAKE) --no-print-directory vet lint race plain

# The checks are a make of their own, so that none begins before the set-up ends, whatever -j and -k say.
.PHONY: setup
setup: ## Installs what make test needs and this machine lacks, or lists it.
	@sh .ci/setup

.PHONY: vet
vet:
	$(GO) vet ./...

# Everything but infra: CDK takes two minutes to compile, once more with the race detector, and
# its tests only read templates.
BUT_INFRA = $$($(GO) list ./... | grep -v '^punctual/infra')

# What checks sources, documents and figures is tested without the race detector, with which it takes five times as
# long: what runs in these tests is raced elsewhere. lint has the first two.
LINTED = layout proof
CHECKS = access cost docs load protocol
# The same for what drives a deployment or plays the whole product for weeks of virtual time.
WHOLE = emulator/deploy system
UNRACED = $(patsubst %,-e '^punctual/integration/%$$',$(LINTED) $(CHECKS) $(WHOLE))

# go vet has looked at the tests, too: without -vet=off, each run of them would do so again. Three packages at a time
# keep two cores busy, as those that use an emulator wait for it half of the time.
.PHONY: race
race:
	$(GO) test -race -vet=off -p 3 -timeout 30m $$($(GO) list ./... | grep -v -e '^punctual/infra' $(UNRACED))

# The deployment comes first: it takes longest, and waits half of the time.
.PHONY: plain
plain:
	$(GO) test -vet=off -timeout 30m $(WHOLE:%=./integration/%) ./infra/... $(CHECKS:%=./integration/%)

.PHONY: templates
templates: ## Tests the templates of the infrastructure, and checks documents, rights and costs; needs Node.js.
	$(GO) test -vet=off -timeout 30m ./infra/... $(CHECKS:%=./integration/%)

.PHONY: short
short: ## Runs the tests that need only Go: the quick check.
	$(GO) test -short $(BUT_INFRA)

.PHONY: generate
generate: ## Generates the Go client's types, and the lists of what is promised and what shows it.
	$(GO) test -count=1 -run '^TestClient_IsMadeOfTheServedDocument$$' ./integration/openapi -update
	$(GO) test -count=1 -run '^TestLists_AreWrittenFromTextsAndMarks$$' ./integration/proof -update

# SECOND=/usr/share/zoneinfo also writes what zdump reads there, in another package of the same release, which a test compares.
.PHONY: zones
zones: ## Builds the time zone rules from the package pinned in shared/calendar/zones.txt; needs Python.
	rm -rf bin/zones
	python3 -m pip download --quiet --no-deps --require-hashes --dest bin/zones --requirement shared/calendar/zones.txt
	$(GO) run ./shared/calendar/cmd/zones -wheel bin/zones/*.whl
	$(if $(SECOND),$(GO) run ./shared/calendar/cmd/zones -second $(SECOND))

.PHONY: lint
lint: $(LINTER) ## Checks the style (golangci-lint, pinned in .ci/tools) and the layout.
	$(LINTER) run ./...
	$(GO) test $(LINTED:%=./integration/%)

.PHONY: spec
spec: ## Checks the specification of the protocol (shared/job/protocol); needs Node.js. TRACES=10 follows ten times as many.
	TRACES=$(or $(TRACES),1) SEED=$(or $(SEED),1) $(GO) test -count=1 -timeout 30m -v ./integration/protocol

.PHONY: bench
bench: ## Measures rates, lateness, memory and cost on this machine.
	$(GO) test -count=1 -timeout 20m -run "^TestLateness" -bench . -benchtime 1x ./integration/load
	$(GO) test -count=1 -run '^$$' -bench '^BenchmarkWorstNext$$' -benchtime 1x ./shared/calendar
	$(GO) test -count=1 -run '^$$' -bench '^BenchmarkSlowBodies$$' -benchtime 3x -cpu 1 ./functions/api

.PHONY: build
build: ## Builds the functions and the worker into build/ARCH (arm64).
	@$(GO) run ./infra/cmd/build -arch $(ARCH)

# Says what is missing, installs the CDK command as infra/package-lock.json pins it, and runs it.
# The app builds the functions and the worker.
CDK := node infra/cdk.js

.PHONY: synth
ifeq ($(filter auth=cognito,$(SETTINGS)),)
synth cfn-lint: ISSUER := $(or $(ISSUER),https://issuer.example)
synth cfn-lint: AUDIENCE := $(or $(AUDIENCE),punctual)
endif
synth: ## Writes the templates of TARGET (dev, prod, emulator) to cdk.out; needs no account.
	$(CDK) synth --quiet $(CONTEXT)

# cfn-lint is pinned in an environment of its own.
CFNLINT := .ci/bin/cfn-lint-1.58.0

$(CFNLINT):
	python3 -m venv $@
	$@/bin/pip install --quiet cfn-lint==1.58.0

.PHONY: cfn-lint
cfn-lint: synth $(CFNLINT) ## Checks the templates of TARGET by cfn-lint; needs Python.
	$(CFNLINT)/bin/cfn-lint cdk.out/*.template.json

.PHONY: prerequisites
prerequisites:
	@sh infra/prerequisites.sh "$(ISSUER)" "$(AUDIENCE)" "$(TARGET)" "$(SETTINGS)" \
		"$(or $(filter diff,$(MAKECMDGOALS)),deploy)" "$(STACKS)"

.PHONY: bootstrap
bootstrap: ## Prepares ACCOUNT (12 digits) and REGION for deploys, once for each.
	@[ -n "$(ACCOUNT)" ] || { echo "bootstrap: ACCOUNT is not set: the 12 digits of your AWS account, such as ACCOUNT=123456789012" >&2; exit 1; }
	$(CDK) bootstrap aws://$(ACCOUNT)/$(REGION)

.PHONY: diff
diff: prerequisites ## Shows what a deploy with the same variables would change.
	$(CDK) diff $(QUOTED) $(CONTEXT)

.PHONY: deploy
deploy: prerequisites ## Deploys TARGET to your AWS account; ISSUER=URL and AUDIENCE=NAME describe your tokens.
	$(CDK) deploy $(QUOTED) $(CONTEXT) $(if $(APPROVAL),--require-approval $(APPROVAL))

.PHONY: destroy
destroy: ## Deletes the stacks of TARGET; the data of prod stays.
	$(CDK) destroy $(QUOTED) $(CONTEXT)

.PHONY: token
token: ## Prints a token of TENANT for SCOPES (read write) from the user pool of auth=cognito.
	@sh infra/token.sh "$(TARGET)" "$(REGION)" "$(SETTINGS)" "$(TENANT)" "$(SCOPES)"

.PHONY: reindex
reindex: ## Makes the index of jobs (search=yes) anew, which finds jobs that were there before it.
	@sh infra/reindex.sh "$(TARGET)" "$(REGION)" "$(SETTINGS)" '$(FROM)'

.PHONY: account
account: ## Tests a whole deployment in ACCOUNT and deletes it; 90 minutes, about a dollar.
	@[ -n "$(ACCOUNT)" ] || { echo "account: ACCOUNT is not set: the 12 digits of an AWS account of your own" >&2; exit 1; }
	PUNCTUAL_ACCOUNT=$(ACCOUNT) AWS_REGION=$(REGION) $(GO) test -count=1 -timeout 3h -v -run '^TestAccount_' ./integration/account

.PHONY: emulator
emulator: ## Runs a local AWS (MiniStack) at PORT (4566) in the foreground.
	$(GO) run ./integration/emulator/cmd/emulator -port $(PORT)

.PHONY: fuzz
fuzz: ## Runs each fuzz test for FUZZTIME (30s).
	@grep -rn --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' functions shared workers integration 2>/dev/null | \
	while IFS=: read -r file _ func; do \
		echo "$(GO) test $$(dirname $$file) $${func#func }"; \
		$(GO) test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "./$$(dirname $$file)" || exit 1; \
	done

.PHONY: clean
clean: ## Removes what was built here, the linter included.
	rm -rf .ci/bin bin build dist cdk.out infra/node_modules coverage* *.prof *.test

$(LINTER): .ci/tools/go.mod .ci/tools/go.sum
	@echo "building the linter, which takes some minutes the first time" >&2
	cd .ci/tools && $(GO) build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@
