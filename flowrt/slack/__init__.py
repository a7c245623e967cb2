"""What Slack is like, without a connection: signatures, identities, texts."""
