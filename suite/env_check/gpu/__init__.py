"""Checks of the driver, the GPUs, the links between GPUs, NCCL and CUDA graphs."""
