"""The notebooks in docs/tutorials run."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parents[1] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.ipynb"))


@pytest.mark.soak
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    if any("torch" in cell.source for cell in notebook.cells):
        pytest.importorskip("torch", reason="2 GB, which is not installed for the tests")
    shutil.copy(DOCS / "examples" / "packed_rows.py", tmp_path)  # which a notebook imports
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
