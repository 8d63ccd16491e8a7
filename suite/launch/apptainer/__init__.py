"""The launcher ``apptainer``: rounds in an Apptainer image, and the command that jobs of Slurm wrap."""
