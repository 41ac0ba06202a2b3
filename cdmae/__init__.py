"""CDMAE: masked auto-encoder pre-training for dense retrieval, with importance-aware masks."""
