"""The jobs: count, train and encode, as Beam pipelines. The algorithms are `wordpiece_core`'s."""
