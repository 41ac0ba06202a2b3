"""Which words matter: n-gram counts, PMI and AMI (equations 7 and 8)."""

MOST_WORDS = 2**32 - 1  # of a collection whose n-grams are counted: numbers of n-grams are uint32
