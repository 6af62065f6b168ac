"""The Python blocks of README.md and docs/*.md, in order, those of a page in one namespace and one folder."""
import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import page_examples  # noqa: E402

EXAMPLES = [e for e in page_examples.examples(ROOT) if e.language == "python"]
NAMESPACES = {}
# PyTorch's exporter is written in onnxscript.
THERE = {"PyTorch": lambda: all(importlib.util.find_spec(name) for name in ("torch", "onnxscript")),
         "a Vulkan device": lambda: False}


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_example(example, tmp_path_factory, monkeypatch):
    if example.not_run or (example.needs and not THERE[example.needs]()):
        pytest.skip(example.not_run or f"it needs {example.needs}, which is not here")
    if example.page not in NAMESPACES:
        folder = tmp_path_factory.mktemp("page")
        page_examples.fill(folder, ROOT)
        NAMESPACES[example.page] = folder, {"__name__": "example"}
    folder, namespace = NAMESPACES[example.page]
    monkeypatch.chdir(folder)
    exec(compile("\n" * (example.line - 1) + example.text, str(ROOT / example.page), "exec"), namespace)
