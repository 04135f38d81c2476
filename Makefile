# The two commands: `make serve` and `make test`. Each installs what it needs on a machine that has Rust.

SHELL := /bin/sh
MAJOR ?= 18

# What `make install` installs, and where. A program named by REVEILLE is taken instead of building one.
PREFIX ?= /usr/local
DESTDIR ?=
PROFILE ?= release
REVEILLE ?=

INSTALLED = $(or $(REVEILLE),$(or $(CARGO_TARGET_DIR),target)/$(patsubst dev,debug,$(PROFILE))/reveille)

.PHONY: help serve install test test-browser test-clients test-pg test-shuttle setup setup-test check

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

serve: SETUP = --for-serve
serve: setup ## build and start the server on its embedded PostgreSQL; ARGS="--listen 127.0.0.1:7000" passes options
	cargo run --locked --bin reveille -- serve $(ARGS)

install: ## install the command, manual pages and completions; PREFIX=/usr/local DESTDIR= PROFILE=release
	$(if $(REVEILLE),,cargo build --locked --profile $(PROFILE) --bin reveille)
	scripts/install "$(INSTALLED)" "$(DESTDIR)" "$(PREFIX)"

test: setup setup-test ## run all tests; REVEILLE_HISTORIES=20000 adds random histories of a queue
	cargo build --locked --bin reveille --bin reveille-postgres
	cargo test --locked --workspace --exclude reveille-duroxide --features reveille/sqlx
	RUST_TEST_THREADS=8 cargo test --locked -p reveille-duroxide # its tests mostly wait for locks to expire

test-clients: setup ## the README's quick start, curl, Node, httpx and Go, Queen's official Python client and jobs by psycopg, against a real server
	scripts/test-clients

test-browser: setup ## which requests of web pages are served, in a headless Chromium against a real server
	scripts/test-browser

test-pg: ## run the tests that depend on PostgreSQL on another version: make test-pg MAJOR=18
	cargo build --locked --bin reveille --bin reveille-postgres
	REVEILLE_PG_BIN="$$(cargo run --locked --quiet --bin reveille-postgres -- fetch --major $(MAJOR))" && export REVEILLE_PG_BIN && \
	cargo test --locked -p reveille -p reveille-testkit -p reveille-chaos --features reveille/sqlx && \
	RUST_TEST_THREADS=8 cargo test --locked -p reveille-duroxide

test-shuttle: ## test the wake engine under thousands of interleavings; SHUTTLE_SCHEDULES=1000000 for a longer run
	RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
	cargo test --locked --release -p reveille-wake --lib --test shuttle

setup: ## find PostgreSQL binaries, or install them; not needed when DATABASE_URL names a server
	@scripts/setup-postgres $(SETUP)

setup-test: ## install what only tests need
	@scripts/setup-pgbouncer

check: ## the checks of CI before the tests
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --features reveille/sqlx -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
	cargo xtask tidy
