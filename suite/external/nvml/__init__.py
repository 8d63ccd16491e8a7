"""GPUs as NVIDIA's management library shows them. The only folder that knows NVML; it reads and changes nothing."""
