"""The settings of a run, their checks, and the files that contain them."""
