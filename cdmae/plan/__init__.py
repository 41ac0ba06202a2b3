"""What a run takes before it runs: jobs, GPU-hours, wall time, disk, memory and the critical path.

`sizes` tells how large collections are, made or not; `arithmetic` counts floating-point operations; `work` says what
each job does; `machine` turns work into seconds, by assumptions that earlier benchmark records replace; `schedule`
puts the jobs on the machine. An estimate is right to a factor of two before anything ran there, and better afterwards.
"""
