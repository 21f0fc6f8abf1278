"""Ranking functions and how they are trained: linear, boosted trees, or one of your own."""
