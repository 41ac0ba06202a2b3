"""Exports: folders and files of a finished run for other programs."""
