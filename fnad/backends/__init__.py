"""Executors of lowered programs."""
