"""Every number that is published: declared, computed, stored."""
