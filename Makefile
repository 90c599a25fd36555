# Thin calls of dev.py, which works without make too: python dev.py test
# Arguments for the tool behind a command: make test ARGS="-k fuse"

PYTHON ?= python3

.PHONY: help demo test test-all nightly bench docs dev lint typecheck clean
help demo test test-all nightly bench docs dev lint typecheck clean:
	@$(PYTHON) dev.py $@ $(ARGS)
