"""Measurements beside what others use, each in the same run; see performance in the README."""
