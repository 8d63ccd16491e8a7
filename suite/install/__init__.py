"""Installs the worker environment, the offline assets, the pins and bundles."""
