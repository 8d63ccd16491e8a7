"""`nox -s compare`: results before and after a change."""
