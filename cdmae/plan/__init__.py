"""Estimate a run in advance: jobs, GPU-hours, wall time, disk, memory and the critical path.

`sizes` returns the sizes of collections, made or not; `flops` counts floating-point operations of
networks; `work` counts the units of each job's work; `prices` is the table of a unit's costs, with
the source of each price; `machine` knows the speed of networks; `plan` sums up. An estimate is
right to a factor of two.
"""
