"""Side by side with the peers: `python -m benchmarks [CORPUS]...`, or `make bench CORPUS=...`."""
