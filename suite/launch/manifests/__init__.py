"""Manifests for Kubernetes and OSMO, and what a pod runs."""
