"""Mutated input for all that labscale reads, files, options, variables: ``nox -s fuzz``, and ``tests/test_fuzz.py``."""
