"""CDMAE: masked auto-encoder pre-training with importance-aware decoder masking, for dense passage retrieval."""
