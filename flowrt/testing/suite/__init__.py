"""Suites: flows, conversations and memory tested in YAML (`flowrt test`)."""
