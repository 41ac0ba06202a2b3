"""The masked auto-encoder and its peers: equations 2 to 6 and 9."""
