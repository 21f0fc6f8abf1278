"""Trusted rankings from many unreliable judgments."""
