"""Thurstonian models: pairwise preferences with hidden domains (tpp) and ordered lists (trm)."""
