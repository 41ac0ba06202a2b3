"""How good a run is (`measures`), and whether the difference of two runs is more than luck
(`significance`).
"""
