"""Text to word-pieces, once: the vocabulary, the cutting, the store."""
