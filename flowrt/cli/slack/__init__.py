"""`flowrt slack`."""
