"""A separate pytest session that replays measured round times into a pytest-benchmark document."""
