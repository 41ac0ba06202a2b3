"""What a run takes before it runs: jobs, GPU-hours, wall time, disk, memory and the critical path.

`sizes` tells how large collections are, made or not; `flops` counts floating-point operations; `work` says what each
job does; `machine` turns work into seconds, by assumptions that earlier benchmark records replace; `plan` puts the jobs
on the machine and writes what comes of it. An estimate is right to a factor of two before anything ran there, and
better afterwards.
"""
