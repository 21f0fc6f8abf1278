"""Models of ordered lists."""
