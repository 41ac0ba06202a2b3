"""The importance of words: n-gram counts, PMI and AMI (equations 7 and 8)."""
