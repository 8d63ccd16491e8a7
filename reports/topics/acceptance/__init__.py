"""How `nox -s accept` judges the published machines."""
