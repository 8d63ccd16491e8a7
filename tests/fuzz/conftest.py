"""How many examples each test tries: a few that stay the same, or with ``--hypothesis-profile long`` new ones."""

from hypothesis import HealthCheck, settings

CHECKS = tuple(HealthCheck)  # an example is a folder of files, which takes long and has much to draw
SHORT = settings(max_examples=50, derandomize=True, database=None, deadline=60_000, suppress_health_check=CHECKS)
settings.register_profile("short", SHORT)
settings.register_profile("long", SHORT, max_examples=2_000, derandomize=False)
settings.load_profile("short")
