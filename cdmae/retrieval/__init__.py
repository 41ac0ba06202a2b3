"""Systems that make runs (section 3.5): BM25, dense search, reranking, fusion, external models."""
