"""Words, sentences and stop-words of the world's scripts and languages."""
