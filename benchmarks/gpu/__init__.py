"""What a GPU has to show, in one command: `python -m benchmarks.gpu`; what it needs is in
`benchmarks/gpu.md`.
"""
