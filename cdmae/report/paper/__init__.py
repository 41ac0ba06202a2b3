"""Compare the paper's tables, figures and claims with the numbers of a run."""
