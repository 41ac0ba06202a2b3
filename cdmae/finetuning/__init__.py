"""Stages 1 to 3 and the reranker: equations 10 and 11, and the groups that they learn from."""
