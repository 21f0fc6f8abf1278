"""Humans and language models judging together: the models' votes are a prior on the humans' scores."""
