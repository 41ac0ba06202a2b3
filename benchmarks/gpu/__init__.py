"""Check and measure the GPU paths: ``python -m benchmarks.gpu``; see `benchmarks/gpu.md`."""
