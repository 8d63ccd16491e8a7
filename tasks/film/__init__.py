"""Films a few seconds of a training with Newton's ray-traced camera, which needs no display, no GL and no RT cores."""
