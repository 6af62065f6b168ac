#!/usr/bin/env python3
"""--help of the measuring tools answers at once: in a copy of the tree that has built nothing, without installing or writing
anything. tests/bench_help_test.py"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = sorted(file.name for file in (ROOT / "bench").glob("*.py") if "__main__" in file.read_text(encoding="utf-8"))


class Help(unittest.TestCase):
    def test_each_tool(self):
        self.assertLessEqual({"compare_onnxruntime.py", "samples.py"}, set(TOOLS))
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copytree(ROOT / "bench", root / "bench", ignore=shutil.ignore_patterns("results", "__pycache__"))
            (root / "scripts").mkdir()
            (root / "scripts" / "setup").write_text("#!/bin/sh\ntouch installed\n", encoding="utf-8")
            (root / "scripts" / "setup").chmod(0o755)
            before = sorted(root.rglob("*"))
            for tool in TOOLS:
                done = subprocess.run([sys.executable, "-B", root / "bench" / tool, "--help"], cwd=root, capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, f"{tool}: {done.stderr}")
                self.assertIn("usage:", done.stdout)
            self.assertEqual(sorted(root.rglob("*")), before)


if __name__ == "__main__":
    unittest.main()
