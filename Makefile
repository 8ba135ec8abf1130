# The front door. Everything else is a script under scripts/ or a CMake preset.
export FUZZ_SECONDS ?= 20
export QUESTION

.DEFAULT_GOAL := build
.PHONY: help setup build check test test-all test-models verify-fixtures demo web format clean

help:  ## Say what the targets do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' Makefile

setup:  ## Install what the build and the tests need
	@scripts/setup

build:  ## Build everything; leaves the command line tool at build/pteryx
	@scripts/build release

check: build  ## Build, then run the tests that need no GPU
	@ctest --test-dir build --label-regex '^host$$' --parallel 2 --output-on-failure --no-tests=error

test:  ## Build and test: formatting, units, operators, programs and the command line tool, with both WebGPU libraries; the npm package in Node and Chromium
	@scripts/test

test-all: test  ## The same, then clang-tidy, sanitizers, hostile runs, fuzzing and models; what CI runs
	@scripts/test --deep

test-models: build  ## Compare real models with references; takes minutes on a software GPU
	@ctest --test-dir build --label-regex '^models$$' --output-on-failure --no-tests=error

verify-fixtures: build  ## Run the operator fixtures and compare them with their recorded results
	@build/pteryx verify tests/fixtures/ops/manifest.json

demo: build  ## Put a question to a small language model; QUESTION="..." asks another
	@scripts/demo "$$QUESTION"

web:  ## Build the npm package and the page, and serve the page on localhost
	@scripts/build web
	@scripts/serve

format:  ## Format the sources
	@scripts/format

clean:  ## Remove the build folders; .deps stays
	@rm -rf build build-debug build-asan build-tsan build-web
