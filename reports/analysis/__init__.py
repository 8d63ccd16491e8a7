"""What the stored rounds say: rows, ratios, curves. Pure: nothing here makes HTML or draws."""
