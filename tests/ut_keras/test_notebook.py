"""The notebooks run from top to bottom and show their pictures."""

import importlib.resources
import os

import nbclient
import nbformat
import pytest


@pytest.mark.slow  # trains
def test_babi_notebook_trains_and_shows_ponder_times(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")]))
    source = importlib.resources.files("ut_keras") / "notebooks" / "babi.ipynb"
    notebook = nbformat.reads(source.read_text(encoding="utf-8"), as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells), "notebooks are committed without outputs"
    lengths = [cell for cell in cells if "EPOCHS, BATCH = 200, 64" in cell.source]
    assert len(lengths) == 1
    lengths[0].source = lengths[0].source.replace("EPOCHS, BATCH = 200, 64", "EPOCHS, BATCH = 2, 64")

    nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute()

    scores = cells[-2].outputs[0]["data"]["text/plain"]
    assert "loss" in scores
    assert "accuracy" in scores
    assert "image/png" in cells[-1].outputs[0]["data"]
