"""HTTP out: one API at one place, its credentials, its pool and its cache."""
