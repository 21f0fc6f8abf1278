"""What Thurstonian pairwise preferences are made of: where chains start, how they walk, and the published estimate."""
