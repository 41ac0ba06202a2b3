"""Compare CDMAE with other tools, measured in the same run; docs/results.md has the results."""
