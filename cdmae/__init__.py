"""CDMAE: masked auto-encoder pre-training for dense retrieval, with importance-aware masks.

The packages in the order of the pipeline, with the equations of the paper that they implement.
Each package imports only from the packages above it:

- `config`: the settings of a run, their checks, and the files that set them.
- `collections`: passages, queries and judgments. One file per source in `sources`.
- `tokens`: conversion of each text to word-pieces.
- `importance`: n-gram counts, PMI (equation 7) and AMI (equation 8).
- `masking`: equation 1, and Algorithm 1 in `strategies`, with one file per strategy.
- `models`: encoders over packed sequences, heads of retrievers, and models on disk.
- `training`: the loop that all trainers share, with its saved state and its processes.
- `pretraining`: equations 2 to 6 and 9. One file per objective in `objectives`; `probes` measure
  the information in an encoder's vectors.
- `finetuning`: stages 1 to 3 and the reranker, with equations 10 and 11.
- `retrieval`: all systems that make a run: BM25, vector search, reranking, fusion.
- `evaluation`: measures and significance.
- `report`: the page, the paper's tables and figures, model cards.
- `plan`: estimates of a run's operations, GPU-hours and disk space.
- `commands`: the commands of `./run`.
"""
