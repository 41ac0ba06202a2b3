"""Which words are masked, one file per strategy; its name is its name in the config."""
