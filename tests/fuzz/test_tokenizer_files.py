"""Changed tokenizer files, for some seconds; `make fuzz` runs longer."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from . import tokenizer_files


@pytest.mark.filterwarnings("ignore")
def test_changed_tokenizer_files_are_read_or_refused(tmp_path: Path) -> None:
    read = []
    for number in range(300):
        rng = Random(number)
        read.append(tokenizer_files.check_files(tokenizer_files.files(rng), tmp_path, rng))
    assert 20 < sum(read) < 280
