"""Finding turns and facts again, by their words and by their meaning."""
