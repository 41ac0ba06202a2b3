"""Convert text to word-pieces, once: vocabularies, tokenisation, files."""
