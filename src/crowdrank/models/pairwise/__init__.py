"""Models of pairwise comparisons without annotators."""
