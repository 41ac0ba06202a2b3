"""Write the report: a page that opens offline, its numbers as CSV, and model cards.

`facts` reads the files of the workflow. `comparisons` lists and tests the pairs of systems that the
config compares, `recipes` the settings in which they differ. `frames` gathers all numbers in four
frames, which are also files; the sections of the page show them, by `tables` and `figures`. `page`
writes. This module imports nothing, because a model card does not depend on the page.
"""
