"""Published collections that are not in BEIR's layout, converted to it from their own files.

``python -m cdmae.collections.conversions NAME --help`` lists the options of a collection.
docs/results.md names the sources of the files. The checksums are those of the collections that were
measured.
"""
