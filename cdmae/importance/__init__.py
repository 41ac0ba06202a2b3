"""Which words matter: n-gram counts, PMI and AMI (equations 7 and 8)."""
