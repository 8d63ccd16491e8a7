"""What crosses every boundary: cases, launches, records and telemetry, as frozen values."""
