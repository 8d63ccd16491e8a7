"""Films of trainings."""
