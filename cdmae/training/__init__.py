"""What all trainers share: the loop, its state, its processes, their setup."""
