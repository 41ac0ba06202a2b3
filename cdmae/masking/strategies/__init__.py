"""Strategies for choosing the masked words, one file each, named as in the config."""
