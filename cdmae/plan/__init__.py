"""Estimate a run in advance: jobs, GPU-hours, wall time, disk, memory and the longest chain.

sizes      sizes of collections, before and after they are made
planned the jobs of a run; a config with the sizes of its collections and networks
flops      floating-point operations of networks
work       the amount of work in each job, in the units of `prices`
prices the table of costs per unit, with the source of each price
machine    the speed of networks
resources  the GPUs, cores, memory and time that jobs request
plan       tables and sums

Estimates are right to within a factor of two.
"""
