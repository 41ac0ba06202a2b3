"""Write the report: a page that opens offline, its tables and figures as files, and model cards.

`facts` reads what the workflow wrote, `comparisons` says which systems may be compared, and a
column of `columns` what they reach. A section of the page is a function that gathers numbers, and
the template of its name says the words. `tables` and `charts` draw, `page` writes. Nothing is
imported here, because a model card does not depend on the page.
"""
