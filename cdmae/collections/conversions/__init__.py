"""Converters of published collections to BEIR's layout.

``python -m cdmae.collections.conversions NAME --help`` lists the options of a collection.
docs/results.md names the sources of the files. The checksums belong to the measured collections.
"""
