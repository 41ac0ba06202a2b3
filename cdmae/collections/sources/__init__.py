"""Sources of collections: one file or folder per source, whose name the config uses."""
