"""Systems that make runs (section 3.5): BM25, dense search, rerankers, fusions, external models."""
