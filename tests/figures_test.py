#!/usr/bin/env python3
"""The checker of figures (bench/figures.py) finds what is wrong: each test plants one wrong figure in a small project of its
own and expects the sentence. tests/figures_test.py"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from tables import makers  # noqa: E402
from tables import patterns  # noqa: E402
import figures  # noqa: E402

RESULT = {
    "certificate": {"command": "bench/denormals.py", "commit": "", "clean": True, "date": "2026-11-23T21:55:00Z",
                    "cpu": {"name": "Some CPU", "architecture": "zen5", "family": "26", "model": "2", "usable_cores": 2},
                    "versions": {"sparkle": "0.1.0"}, "load_average": 0.1},
    "rows": [{"name": "softmax", "normal_ms": 1.0, "denormal_ms": 1.03, "ratio": 1.034}],
    "least_ratio": 0.98, "largest_ratio": 1.034}
TEXT = """# Project

Softmax takes [1.03](bench/results/one.json#rows/softmax/ratio) times its time; `--round-ms 5`.

<!-- figures: denormals one.json -->
<!-- end of figures -->

<!-- quoted: what another project printed -->
They said 530 GFLOP/s.
<!-- end of figures -->
"""


class Figures(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "docs").mkdir()
        (self.root / "bench" / "results").mkdir(parents=True)
        self.git("init", "-q")
        (self.root / "code").write_text("x")
        self.git("add", "code")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
        self.result = copy.deepcopy(RESULT)
        self.result["certificate"]["commit"] = self.git("rev-parse", "HEAD")
        self.keep()
        self.readme = self.root / "README.md"
        self.readme.write_text(TEXT)
        self.assertEqual(figures.update(self.root), ["README.md"])

    def tearDown(self):
        self.folder.cleanup()

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def keep(self):
        (self.root / "bench" / "results" / "one.json").write_text(json.dumps(self.result))

    def replace(self, old, new):
        text = self.readme.read_text()
        self.assertIn(old, text)
        self.readme.write_text(text.replace(old, new))

    def finds(self, *sentences):
        problems, _ = figures.check(self.root)
        self.assertEqual(len(problems), len(sentences), problems)
        for problem, sentence in zip(problems, sentences):
            self.assertIn(sentence, problem)

    def test_what_agrees_passes(self):
        self.finds()
        self.assertEqual(figures.update(self.root), [])
        self.assertIn("0.98 to 1.03", self.readme.read_text())

    def test_a_changed_number_in_a_table(self):
        self.replace("0.98 to 1.03", "0.98 to 1.02")
        self.finds("the figures of 'denormals' are not those of one.json")

    def test_a_changed_number_in_a_sentence(self):
        self.replace("[1.03]", "[1.01]")
        self.finds("'1.01' is 1.03 in bench/results/one.json#rows/softmax/ratio")

    def test_a_changed_result(self):
        self.result["rows"][0]["ratio"], self.result["largest_ratio"] = 1.2, 1.2
        self.keep()
        self.finds("'1.03' is 1.20", "are not those of one.json")

    def test_a_missing_file(self):
        (self.root / "bench" / "results" / "one.json").unlink()
        self.finds("one.json is not there", "one.json is not there")

    def test_a_missing_member(self):
        self.replace("#rows/softmax/ratio", "#rows/sigmoid/ratio")
        self.finds("the file has no 'rows/sigmoid/ratio'")

    def test_a_dirty_tree(self):
        self.result["certificate"]["clean"] = False
        self.keep()
        self.finds("measured on a tree that differed from its commit")

    def test_no_commit(self):
        for commit in ("unknown", "e0cf3a6"):
            self.result["certificate"]["commit"] = commit
            self.keep()
            problems = figures.certificate_problems(self.root, "one.json", self.result)
            self.assertEqual(problems, [f"bench/results/one.json: '{commit}' is no commit"])
        del self.result["certificate"]["commit"]
        self.assertTrue(figures.certificate_problems(self.root, "one.json", self.result))

    def test_a_commit_that_nobody_has(self):
        self.result["certificate"]["commit"] = "0123456789" * 4
        problems = figures.certificate_problems(self.root, "one.json", self.result)
        self.assertEqual(problems, ["bench/results/one.json: the commit 012345678901 is not in this history"])

    def test_every_part_of_the_certificate_is_asked_for(self):
        for key in figures.CERTIFICATE:
            result = copy.deepcopy(self.result)
            del result["certificate"][key]
            self.assertTrue(figures.certificate_problems(self.root, "one.json", result), key)
        del self.result["certificate"]
        self.keep()
        problems, _ = figures.check(self.root)
        self.assertTrue(any("it has no certificate" in p for p in problems), problems)

    def test_a_result_that_no_text_cites(self):
        (self.root / "bench" / "results" / "two.json").write_text(json.dumps(self.result))
        self.finds("two.json: no text says anything of it")

    def test_figures_without_a_file(self):
        for wrong in ("takes 12.5 ms", "gives 508.0 GFLOP/s", "reaches 87 % of the FMA peak", "87 % of peak", "at 21 GB/s",
                      "2 times as fast as the loop", "3 times faster", "some 40 us", "| 1.2 ms | 3 |"):
            (self.root / "docs" / "page.md").write_text(f"It {wrong} here.\n")
            problems, _ = figures.check(self.root)
            self.assertEqual(len(problems), 1, (wrong, problems))
            self.assertIn("comes from no file of bench/results", problems[0])
        for right in ("three vectors", "64x56x56", "in 16 bits", "--accuracy 5e-5", "1.5 MB of weights", "4096 bytes",
                      "six of nine", "version 3.13", "a step of 8 items"):
            (self.root / "docs" / "page.md").write_text(f"It has {right} here.\n")
            self.assertEqual(figures.check(self.root)[0], [], right)

    def test_a_table_without_a_file(self):
        (self.root / "docs" / "page.md").write_text("| layer | median ms |\n|---|---:|\n| first | - |\n| second | 1.25 |\n")
        self.finds("the column 'median ms' comes from no file")
        (self.root / "docs" / "page.md").write_text("| layer | registers |\n|---|---:|\n| second | 125 |\n")
        self.finds()

    def test_a_block_without_end(self):
        self.replace("<!-- end of figures -->\n\n<!-- quoted", "\n<!-- quoted")
        problems, _ = figures.check(self.root)
        self.assertIn("have no '<!-- end of figures -->'", problems[0])

    def test_an_unknown_maker(self):
        self.replace("figures: denormals", "figures: normals")
        self.finds("there is no maker of figures 'normals'")

    def test_layers_without_onednn_do_not_flatter(self):
        """Where oneDNN left nothing to compare with, the best of the others is OpenBLAS, thirty times behind."""
        def row(name, **speedups):
            return {"name": name, "best_speedup": min(speedups.values()),
                    "peers": {k: {"speedup": v} for k, v in speedups.items()}}
        rows = [row("a", onednn=1.0, openblas=3.0), row("b", openblas=30.0), row("c", openblas=0.5)]
        for unit in ("avx512", "avx2"):
            result = {"device": {"units": [{"name": unit}]}, "rows": rows, "threads": 2}
            self.assertEqual(makers.best_mean(result, rows), (1.0, 1))
            said = makers.make_summary_layers(self.root, [{**result, "certificate": self.result["certificate"]}], ["x"])
            self.assertIn("1.00 times as long (geometric mean of 1 layers); behind it by more than 7 %: 1 of 3", said[0])

    def test_a_planned_level_behind_the_best(self):
        def row(name, share, algorithm, predicted):
            return {"level": name, "percent_of_peak": share, "algorithm": algorithm, "predicted_ms": predicted, "gflops": 1.0,
                    "threads": 1, "predicted_bytes": {"L1": 1, "L2": 1}}
        rows = [row("winograd2", 120, "winograd2", 0.72), row("winograd4", 160, "winograd4", 0.66),
                row("as planned", 120, "winograd2", 0.72)]
        result = {**self.result, "threads": 1, "layers": {"layer": {"why": "w", "ladder": rows, "ablate": []}}}
        said = "\n".join(makers.make_patterns(self.root, [result], ["x"]))
        self.assertIn("| as planned | 120.0 | 0.75 |", said)
        self.assertIn("as planned (1 thread) is behind: the planner took winograd2, and winograd4 came out faster", said)

    def test_rows_beside_half_a_peak_are_left_out(self):
        def row(name, share, peak):
            return {"name": name, "algorithm": "gemm", "percent_of_peak": share, "percent_of_roof": share, "median_ms": 1.0,
                    "roofs": {"compute": {"of": "avx2", "probed": peak, "spread_percent": 1}}}
        rows = [row("a", 80.0, 340e9), row("b", 80.0, 330e9), row("c", 160.0, 177e9)]
        result = {**self.result, "device": {"cores": 2, "units": [{"name": "avx2"}]}, "rows": rows}
        said = "\n".join(makers.make_summary_roof(self.root, [result], ["x"]))
        self.assertIn("80 % of the FMA peak, 80 % of the roof of each layer (geometric means of 2 layers; 1 of 3 rows", said)
        self.assertIn("| all | 2 | avx2 | 2 | 80 |", "\n".join(makers.make_roof(self.root, [result], ["x"])))
        rows[2]["roofs"]["compute"] = {"of": "avx2", "probed": 330e9, "spread_percent": 60}
        self.assertIn("1 of 3 rows", "\n".join(makers.make_summary_roof(self.root, [result], ["x"])))
        others = ({},  # what nobody probed is kept, and what ran on another unit or on fewer threads than the largest peak
                  {"roofs": {"compute": {"of": "avx512_bf16", "probed": 177e9}}},
                  {"threads": 1, "roofs": {"compute": {"of": "avx2", "probed": 177e9}}})
        for other in others:
            result["rows"] = [*rows[:2], {**rows[2], "roofs": {}, **other}]
            self.assertNotIn("left out", "\n".join(makers.make_summary_roof(self.root, [result], ["x"])), other)

    def test_rows_beside_half_a_peak_are_marked_or_left_out_of_classes(self):
        def row(name, share, peak):
            return {"name": name, "algorithm": "gemm", "percent_of_peak": share, "percent_of_roof": share, "median_ms": 1.0,
                    "predicted_ms": 1.0, "gflops": 1.0, "peers": {"onednn": {"speedup": 2.0}}, "best_speedup": 2.0,
                    "roofs": {"compute": {"of": "avx512", "probed": peak, "spread_percent": 1}}}
        rows = [row("a", 80.0, 340e9), row("b", 160.0, 177e9)]
        result = {**self.result, "threads": 2, "device": {"cores": 2, "units": [{"name": "avx512"}]}, "rows": rows}
        said = "\n".join(makers.make_headline(self.root, [result], ["x"]))
        self.assertIn("| a | - | 2 | gemm | 1 | 1 | 80 | 80 |", said)
        self.assertIn("| b | - | 2 | gemm | 1 | 1 | 160 * | 160 * |", said)
        self.assertIn("\\* others used the machine", said)
        (self.root / "shapes").mkdir()
        (self.root / "shapes" / "layers.csv").write_text("name,c,r,s\na,8,1,1\nb,8,1,1\n")
        said = "\n".join(makers.make_layers(self.root, [result], ["x"]))
        self.assertIn("| 1x1 | 2 | avx512 | 2 | 80 | 2.00 | 2.00 |", said)
        self.assertIn("1 of 2 rows ran while others used the machine and are not in % of peak", said)

    def test_reasons_that_the_data_contradicts_are_not_given(self):
        def row(key, name, share, schedule, peak=100e9):
            return {key: name, "percent_of_peak": share, "algorithm": "gemm", "schedule": schedule, "predicted_ms": 1.0,
                    "gflops": 1.0, "threads": 1, "predicted_bytes": {"L1": 1, "L2": 1},
                    "roofs": {"compute": {"of": "avx2", "probed": peak, "spread_percent": 1}}}

        def said(second):
            ladder = [row("level", "register-tiled", 80.0, "r"), row("level", "implicit GEMM", second, "s")]
            layer = {"why": "w", "ablate": [row("without", "all on", 91.0, "s")], "ladder": ladder}
            result = {**self.result, "threads": 1, "layers": {"l": layer}}
            return "\n".join(makers.make_patterns(self.root, [result], ["x"]))
        self.assertIn("measured twice, differed by 1.32x", said(69.0))
        self.assertIn("implicit GEMM (1 thread) is within what the same kernel, measured twice, differed by.", said(69.0))
        self.assertNotIn("gathered tap by tap", said(69.0))
        self.assertIn("| implicit GEMM | 90.0 | 1.12 |", said(90.0))
        self.assertIn("measured twice, differed by 1.01x", said(90.0))

    def test_the_planner_behind_a_level_of_its_own_algorithm(self):
        def said(schedule, best, planned, peak=100e9):
            ladder = [{"level": name, "percent_of_peak": share, "algorithm": algorithm, "schedule": s, "predicted_ms": 1.0,
                       "gflops": 1.0, "threads": 1, "predicted_bytes": {"L1": 1},
                       "roofs": {"compute": {"of": "avx2", "probed": p, "spread_percent": 1}}}
                      for name, share, algorithm, s, p in (
                          ("direct", 99.0, "direct", "d", peak), ("implicit GEMM", best, "gemm", "s", 100e9),
                          ("as planned", planned, "gemm", schedule, 100e9))]
            result = {**self.result, "threads": 1, "layers": {"l": {"why": "w", "ablate": [], "ladder": ladder}}}
            return "\n".join(makers.make_patterns(self.root, [result], ["x"]))
        self.assertIn("is behind: implicit GEMM has another schedule of gemm, and came out faster.", said("t", 100.0, 80.0))
        self.assertNotIn("differed by", said("t", 100.0, 80.0))
        beside_half = said("t", 90.0, 80.0, 50e9)  # direct, whose share is the largest, is not the best
        self.assertIn("is behind: implicit GEMM has another schedule of gemm, and came out faster.", beside_half)
        best, planned = 100.0, 69.0  # the factor is that of the only pair, and 1 / (69 / 100) is more than 100 / 69
        self.assertGreater(1 / (planned / best), best / planned)
        self.assertIn("as planned (1 thread) is within what the same kernel", said("s", best, planned))

    def test_patterns_show_the_stored_levels(self):
        rows = [{"without": "all on", "percent_of_peak": 80.0, "algorithm": "gemm", "schedule": "s", "threads": 1,
                 "predicted_bytes": {"L1": 1}}]
        name, conv, _ = patterns.LAYERS[0]
        result = {**self.result, "threads": 1, "layers": {name: {"why": "w", "ladder": [], "ablate": rows}}}
        with self.assertRaisesRegex(ValueError, f"{conv}.txt is not there; scripts/update_golden_plans"):
            makers.make_patterns(self.root, [result], ["x"])
        (self.root / "tests" / "golden_levels").mkdir(parents=True)
        (self.root / "tests" / "golden_levels" / f"{conv}.txt").write_text("registers   six by four\n")
        slower = {"why": "w", "ladder": [], "ablate": [{**rows[0], "percent_of_peak": 40.0}]}
        other = {**result, "threads": 2, "layers": {name: slower}}
        said = makers.make_patterns(self.root, [result, other], ["x", "y"])
        self.assertEqual(said[said.index("```text") + 1], "registers   six by four")
        self.assertIn("| switched off | zen5, 1 thread: % of peak | brings x | zen5, 2 threads: % of peak | brings x | "
                      "MB beyond L1 | MB from DRAM |", said)
        self.assertIn("| all on | 80.0 | - | 40.0 | - | 0.0 | 0.0 |", said)

    def test_a_pattern_beside_half_a_peak_has_no_factor(self):
        def row(name, share, peak):
            return {"without": name, "percent_of_peak": share, "algorithm": "gemm", "schedule": name, "gflops": 1.0,
                    "threads": 1, "predicted_bytes": {"L1": 1},
                    "roofs": {"compute": {"of": "avx2", "probed": peak, "spread_percent": 1}}}
        rows = [row("all on", 80.0, 100e9), row("tile", 60.0, 50e9), row("fuse", 79.0, 99e9)]
        result = {**self.result, "threads": 1, "layers": {"l": {"why": "w", "ladder": [], "ablate": rows}}}
        said = "\n".join(makers.make_patterns(self.root, [result], ["x"]))
        self.assertIn("| tile | - | - |", said)
        self.assertIn("tile (1 thread) ran while others used the machine: no factor.", said)
        self.assertIn("| fuse | 79.0 | 1.01 |", said)

        rows = [{"level": name, **row("", share, peak)} for name, share, peak in
                (("naive", 1.0, 100e9), ("threaded", 2.0, 50e9), ("vectorised", 16.0, 100e9), ("implicit GEMM", 64.0, 100e9))]
        result["layers"]["l"] = {"why": "w", "ladder": rows, "ablate": []}
        said = "\n".join(makers.make_patterns(self.root, [result], ["x"]))
        self.assertIn("| threaded | - | - |", said)
        self.assertIn("| vectorised | 16.0 | - |", said)
        self.assertIn("| implicit GEMM | 64.0 | 4.00 |", said)


if __name__ == "__main__":
    unittest.main()
