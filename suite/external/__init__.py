"""Foreign tools, one file each: Docker, Slurm, ssh, NVML, the kernel and the machine."""
