"""Fine-tuning: retriever stages 1 to 3, the reranker, their losses and their training groups."""
