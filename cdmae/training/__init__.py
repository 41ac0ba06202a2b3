"""Shared parts of all trainers: the loop, its state, its processes, their setup."""
