"""Reads GPUs through NVIDIA's management library (NVML). No other folder uses NVML; nothing is changed."""
