"""The importance of words: n-gram counts, PMI and AMI (equations 7 and 8)."""

MOST_WORDS = 2**32 - 1  # the most words per job, as n-grams have uint32 numbers
