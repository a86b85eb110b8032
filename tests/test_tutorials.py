"""The notebooks in docs/tutorials run, and are stored with what their cells gave."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parents[1] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.ipynb"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    if any("torch" in cell.source for cell in notebook.cells):
        pytest.importorskip("torch", reason="2 GB, which is not installed for the tests")
    shutil.copy(DOCS / "examples" / "packed_rows.py", tmp_path)  # which a notebook imports
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_notebook_is_stored_as_it_ran(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [o for cell in cells for o in cell.outputs if o.output_type == "error"]
    assert [cell for cell in cells if cell.outputs]
