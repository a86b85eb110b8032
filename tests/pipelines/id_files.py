"""Reads the files of datasets that hold ids alone, by their published layouts."""

from __future__ import annotations

import gzip
import struct
from array import array
from itertools import pairwise
from pathlib import Path

import numpy as np


def read_ids(path: Path, size: int) -> list[int]:
    numbers = array({2: "H", 4: "I"}[size])
    numbers.frombytes(path.read_bytes())
    return numbers.tolist()


def read_megatron(path: Path, of_type: int = 8) -> list[list[int]]:
    """Read the documents of an IndexedDataset, each of one sequence."""
    index = path.with_suffix(".idx").read_bytes()
    magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version, code) == (b"MMIDIDX\0\0", 1, of_type)
    lengths = struct.unpack_from(f"<{sequences}i", index, 34)
    pointers = struct.unpack_from(f"<{sequences}q", index, 34 + 4 * sequences)
    begins = struct.unpack_from(f"<{documents}q", index, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * documents
    assert (begins[0], begins[-1]) == (0, sequences)
    size = {8: 2, 4: 4}[of_type]
    ids = read_ids(path, size)
    assert sum(lengths) == len(ids)
    assert begins == tuple(range(documents))
    return [ids[p // size :][:n] for p, n in zip(pointers, lengths, strict=True)]


def read_ds(path: Path, size: int = 2) -> list[list[int]]:
    """The documents of a file of datatrove, as its `DocumentTokenizerMerger` reads them."""
    index = Path(f"{path}.index").read_bytes()
    ends = struct.unpack(f"<{len(index) // 8}Q", index)
    ids = read_ids(path, size)
    (name, width), tokens = _metadata(path)
    assert (name != "", width, tokens, ends[-1]) == (True, str(size), len(ids), len(ids))
    return [ids[a:b] for a, b in pairwise((0, *ends))]


def _metadata(path: Path) -> tuple[list[str], int]:
    name, tokens, _ = Path(f"{path}.metadata").read_text().splitlines()
    return name.split("|"), int(tokens)


def read_npy(path: Path, size: int = 2) -> list[list[int]]:
    """Read the documents of a file of OLMo-core by their bounds, which both other files have."""
    ids = read_ids(path, size)
    lines = gzip.decompress(path.with_suffix(".csv.gz").read_bytes()).decode().splitlines()
    bounds = [tuple(map(int, line.split(","))) for line in lines]
    offsets = np.load(path.parent / "document_offsets" / path.name).tolist()
    assert bounds == [*pairwise(offsets)]
    assert offsets[-1] == len(ids)
    return [ids[start:end] for start, end in bounds]


READERS = {"megatron": read_megatron, "ds": read_ds, "npy": read_npy}
ENDINGS = {"megatron": "bin", "ds": "ds", "npy": "npy"}
