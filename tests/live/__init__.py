"""Checks against software that nobody here wrote; `make live` runs them, `make test` never does."""
