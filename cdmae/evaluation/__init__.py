"""Measuring runs (`measures`), and testing the differences between them (`significance`)."""
