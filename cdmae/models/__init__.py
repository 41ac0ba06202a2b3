"""Encoders over packed sequences, the heads of retrievers, and models on disk."""
