"""Measure runs (`measures`), and test the differences between them (`significance`)."""
