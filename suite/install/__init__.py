"""What labscale installs: the worker environment, the offline assets, the pins and the bundle."""
