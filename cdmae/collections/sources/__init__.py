"""Sources of collections: one file or folder per source; the config uses its name."""
