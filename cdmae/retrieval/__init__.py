"""Whatever makes a run (section 3.5): BM25, vectors and search, reranking, fusion, models of
others.
"""
