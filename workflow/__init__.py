"""The modules that the rules import."""
