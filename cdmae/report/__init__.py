"""Write the report: a page that opens offline, its tables and figures as files, and model cards.

`facts` reads the files of the workflow. `comparisons` lists the pairs of systems that the config
compares, `recipes` the settings in which they differ, and `columns` computes means and differences.
A section of the page is a function that gathers numbers; the template of the same name contains the
text. `tables` and `charts` draw, and `page` writes. This module imports nothing, because a model
card does not depend on the page.
"""
