"""Encoders that read packed rows, and models on disk."""
