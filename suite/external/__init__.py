"""Interfaces to other programs and the machine, one file each: Docker, Slurm, ssh, NVML, the kernel."""
