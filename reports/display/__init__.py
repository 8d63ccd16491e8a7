"""Makes HTML: tables, figures, links. Altair is imported here and in charts of topics only."""
