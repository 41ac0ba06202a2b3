"""Compare the paper's tables, figures and claims with our numbers."""
