"""Serve the systems of a finished run: a page to ask and judge them, and a JSON interface."""
