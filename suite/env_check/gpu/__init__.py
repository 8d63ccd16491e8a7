"""Driver, GPUs, their links, NCCL and CUDA graphs."""
