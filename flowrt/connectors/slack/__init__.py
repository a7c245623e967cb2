"""The connector `slack`."""
