"""Programs that tests run in the worker environment; each prints one JSON line."""
