# What a contributor runs. Each target is a script in .ci that says what it does; CI runs the same ones.
SHELL := /bin/bash
.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "make %-8s %s\n", $$1, $$2 }'

.PHONY: test
test: ## does this change break a promise? In minutes; PKG=./redlock RUN=Name: only these tests
	@PKG='$(PKG)' RUN='$(value RUN)' .ci/test

.PHONY: quick
quick: ## build, vet, and what runs in virtual time: within a minute
	@.ci/quick

.PHONY: proof
proof: ## do the promises hold for long, in time and under torture? Part by part; PKG=./redlock: only its parts
	@PKG='$(PKG)' AGAIN='$(AGAIN)' .ci/proof

.PHONY: soak
soak: ## is every holder told in time when links are cut 10,000 times per store? STORES='redis etcd' CUTS=300: fewer
	@STORES='$(STORES)' CUTS='$(CUTS)' .ci/soak

.PHONY: proof-mysql
proof-mysql: ## the suite of the contract on a MySQL that runs: URL=mysql://root@127.0.0.1:3306/test, a database to spare
	@INTERLOCK_MYSQL='$(or $(URL),$(error want URL=mysql://USER@HOST:PORT/DATABASE))' go test -count=1 -v -run '^TestConformanceElsewhere$$' ./mysqllock

.PHONY: build
build: ## bin/interlock and bin/interlock-lab as they are released: without cgo, trimmed, stripped
	@.ci/build

.PHONY: release
release: ## dist/: archives, packages, checksums, lists of modules; PLATFORMS=linux/amd64: only these
	@PLATFORMS='$(PLATFORMS)' .ci/release

.PHONY: check
check: ## format, vet, lint, tidy, API text, docs, and builds for every platform
	@.ci/check

.PHONY: mutants
mutants: ## turn on each seeded bug, or those of ID=A8 or PKG=./redlock, and see its test fail
	@.ci/mutants $(if $(ID),-id $(ID)) $(if $(PKG),-pkg $(PKG))

.PHONY: failures
failures: ## write docs/failures.md, the catalogue of failures with their tests and bugs
	@go run ./internal/mutant -page > docs/failures.md.new && mv docs/failures.md.new docs/failures.md

.PHONY: models
models: ## check the Spin models: what must hold does, and fails with a rule left out
	@.ci/models

.PHONY: bench
bench: ## measure against the floors and the other libraries
	@.ci/bench

.PHONY: fmt
fmt: ## format the code
	@go tool -modfile=tools/go.mod golangci-lint fmt

.PHONY: api
api: ## write api.txt, the exported API as reviewers read it
	@.ci/api > api.txt.new && mv api.txt.new api.txt

.PHONY: vuln
vuln: ## look up known vulnerabilities (needs vuln.go.dev, or VULNDB=file:///a/copy)
	@go tool -modfile=tools/go.mod govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...
