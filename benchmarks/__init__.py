"""Measurements beside what others use, each in the same run; docs/results.md has the numbers."""
