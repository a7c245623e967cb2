"""Files below one folder, and nowhere else."""
