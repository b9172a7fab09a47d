"""A run on a SLURM cluster: the script, its submission, what happens to it afterwards."""
