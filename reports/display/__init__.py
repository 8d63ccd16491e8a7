"""Makes HTML: tables, figures, links. Altair is imported in ``charts`` only."""
