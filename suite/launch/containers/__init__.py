"""Rounds in containers: Docker, Podman and Apptainer."""
