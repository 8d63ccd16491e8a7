"""Mutated input for all that labscale reads, files, options, variables: ``nox -s fuzz``, and ``test_fuzz.py``."""
