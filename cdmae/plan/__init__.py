"""Estimate a run in advance: the operations of its networks, GPU-hours, and disk."""
