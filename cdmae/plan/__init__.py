"""Estimate a run in advance: the operations of its networks, GPU-hours, and disk.

flops      floating-point operations of networks, and sizes of collections
machine    the speed of networks on a machine
plan       the estimates of a config, as a table with sums
"""
