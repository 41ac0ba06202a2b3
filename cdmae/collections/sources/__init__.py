"""Where collections come from, one file or folder per source; its name is its name in the config."""
