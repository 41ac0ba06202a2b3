"""Estimate a run in advance: the operations of its networks, GPU-hours, and disk.

sizes      sizes of collections, before and after they are made
flops      floating-point operations of networks
machine    the speed of networks on a machine
plan       the estimates of a config, as a table with sums
"""
