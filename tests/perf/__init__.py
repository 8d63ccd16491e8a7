"""How long labscale's own work takes: ``nox -s perf``. No test, since a busy machine is no fault."""
