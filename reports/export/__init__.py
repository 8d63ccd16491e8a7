"""Results as files: tables beside the pages, and formats that other tools read."""
