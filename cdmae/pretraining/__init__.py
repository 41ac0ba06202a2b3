"""The masked auto-encoder and other pre-training objectives: equations 2 to 6 and 9."""
