"""The heavy half of labscale: what runs inside a rank, in the worker environment, over the real Isaac Lab."""
