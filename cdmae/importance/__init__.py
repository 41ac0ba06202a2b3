"""The importance of words: n-gram counts, PMI and AMI (equations 7 and 8)."""

MOST_WORDS = 2**32 - 1  # that one job counts together: the numbers of n-grams are uint32
