"""From stored results to a page: ``analysis`` (pure), ``charts`` and ``tables`` (pure), ``build`` (the only I/O)."""
