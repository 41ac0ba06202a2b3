"""The commands of ``./run``, and the modules that the rules import."""
