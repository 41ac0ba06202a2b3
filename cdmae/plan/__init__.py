"""What a run takes before it runs: jobs, GPU-hours, wall time, disk, memory and the critical path.

`sizes` tells how large collections are, made or not; `flops` counts floating-point operations of
networks; `work` counts the units of each job's work; `prices` is the table of what a unit costs,
with the source of each price; `machine` says how fast networks are computed; `plan` sums up. An
estimate is right to a factor of two.
"""
