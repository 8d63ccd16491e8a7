"""Changed input for everything that labscale reads: files, options, variables. ``nox -s fuzz`` tries more of it."""
