"""Show the tables of the paper next to the numbers of a run, and score its claims."""
