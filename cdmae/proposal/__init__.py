"""Propose a config for a folder of data and a machine: the work of ``./run new``."""
