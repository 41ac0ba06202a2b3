"""Serve the systems of a finished run: pages for searching and judging, and a JSON interface."""
