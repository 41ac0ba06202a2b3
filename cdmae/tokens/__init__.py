"""Convert text to word-pieces: vocabularies, tokenisation, and files of tokens."""
