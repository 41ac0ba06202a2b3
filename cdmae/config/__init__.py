"""What a run is: the settings, their checks, and the files they come from."""
