"""`nox -s accept`: whether a machine is as fast as the published ones with the same GPUs."""
