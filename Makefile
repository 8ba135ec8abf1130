# The front door. Everything else is a script under scripts/ or a CMake preset.
export FUZZ_SECONDS ?= 20

.DEFAULT_GOAL := build
.PHONY: help setup build check test demo format clean

help:  ## Say what the targets do
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

setup:  ## Install what the build and the tests need
	@scripts/setup

build:  ## Build everything; leaves the command line tool at build/pteryx
	@scripts/build release

check: build  ## Build, then run the tests that need no GPU
	@ctest --test-dir build --label-regex '^host$$' --parallel 2 --output-on-failure --no-tests=error

test:  ## Run everything that must hold before a change lands
	@scripts/test

demo: build  ## Run the operator fixtures and compare them with their recorded results
	@build/pteryx verify tests/fixtures/ops/manifest.json

format:  ## Format the sources
	@scripts/format

clean:  ## Remove the build folders; .deps stays
	@rm -rf build build-debug build-asan
