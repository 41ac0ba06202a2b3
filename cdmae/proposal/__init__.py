"""Propose a config for a folder of data and a machine, as ``./run new`` does."""
