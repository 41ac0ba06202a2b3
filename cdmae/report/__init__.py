"""The report: one page that opens offline, its tables and figures as files, and the cards of models.

`facts` reads what the workflow wrote, and `comparisons` says which systems may be compared. A section of the page is a
function in `sections` that gathers numbers, and the template of its name says the words. `tables` and `charts` draw,
`page` writes. Nothing is imported here, because a model card does not depend on the page.
"""
