#!/usr/bin/env python3
"""The pages of `sparkle check --html` and `sparkle report --html`: complete in themselves, and alive in a browser. Its part is
skipped where there is no chromium. tests/command/pages_test.py SPARKLE"""
import html
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
COMMAND = "sparkle"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MODEL = [SOURCE / "models/upscale2x.onnx", "--shape", "image=1x3x270x480"]


class Elements(html.parser.HTMLParser):
    """All elements with their attributes, and which were left open."""
    VOID = {"meta", "input", "line", "circle", "br"}

    def __init__(self):
        super().__init__()
        self.seen, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            if not self.open or self.open.pop() != tag:
                raise AssertionError(f"</{tag}> closes nothing")


class Pages:
    """What holds for both; ``written``: the command, ``targets``: devices on the page, ``plots``: of each."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name) / "page.html"
        subprocess.run([COMMAND, *cls.written, "--html", cls.path], check=True, capture_output=True, timeout=120)
        cls.text = cls.path.read_text(encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_it_needs_nothing_but_itself(self):
        self.assertNotRegex(self.text, r"https?://|@import|url\(|<link|\bsrc=|fetch\(|XMLHttpRequest")
        elements = Elements()
        elements.feed(self.text)
        self.assertEqual(elements.open, [])
        tags = [tag for tag, _ in elements.seen]
        self.assertEqual(tags.count("article"), self.targets)
        self.assertEqual(tags.count("svg"), self.targets * self.plots)

    def test_each_layer_has_a_row_and_each_product_a_dot(self):
        for article in self.text.split("<article")[1:]:
            rows = re.findall(r"<tr data-row=(\d+)>", article)
            dots = re.findall(r"<circle class='dot [^>]*data-row=(\d+)", article)
            self.assertGreater(len(rows), 5)
            self.assertGreater(len(dots), 3)
            self.assertLessEqual(set(dots), set(rows))
            self.assertIn("prefers-color-scheme", self.text)

    def browser(self, address, *options):
        if not CHROMIUM:
            self.skipTest("no chromium here; scripts/setup test installs it")
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                                   "--enable-logging=stderr", f"--user-data-dir={profile}",
                                   "--virtual-time-budget=2000", *options, address],
                                  capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertNotRegex(done.stderr, r"Uncaught|SyntaxError|TypeError|ReferenceError")
        return done.stdout

    def layer_times(self, article):
        return [float(row) for row in re.findall(r"<tr data-row=\"\d+\">.*?data-v=\"[^\"]*\".*?data-v=\"([^\"]*)\"", article)]

    def test_a_browser_runs_it(self):
        dom = self.browser(f"file://{self.path}#dark,t1,sort=5", "--dump-dom")
        self.assertRegex(dom, r"<html[^>]*data-theme=\"dark\"")
        if self.targets > 1:
            self.assertRegex(dom, r"<main class=\"tabs\">")
            self.assertRegex(dom, r"<article id=\"t1\" class=\"here\">")
        times = self.layer_times(dom[dom.index("<article"):].split("</article>")[0])
        self.assertGreater(len(times), 5)
        self.assertEqual(times, sorted(times, reverse=True))
        plain = self.browser(f"file://{self.path}", "--dump-dom")
        times = self.layer_times(plain[plain.index("<article"):].split("</article>")[0])
        self.assertNotEqual(times, sorted(times, reverse=True))

    def test_it_is_good_on_paper(self):
        if not shutil.which("pdftotext"):
            self.skipTest("no pdftotext here; scripts/setup test installs it")
        paper = self.path.with_suffix(".pdf")
        self.browser(f"file://{self.path}#dark,t1", "--no-pdf-header-footer", f"--print-to-pdf={paper}")
        text = subprocess.run(["pdftotext", "-layout", paper, "-"], check=True, capture_output=True, text=True,
                              timeout=60).stdout
        # Every target in its order, not the one whose tab is open alone: the plot's axes and roofs, then a line for each layer.
        self.assertEqual(text.count("flops for each byte of operands"), self.targets)
        self.assertEqual(text.count("flops per second"), self.targets)
        heading = re.findall(r"<h2[^>]*>([^<]+)</h2>", self.text)[-1]
        tables = text.split(heading)[1:]
        articles = self.text.split("<article")[1:]
        self.assertEqual(len(tables), len(articles))
        for table, article in zip(tables, articles):
            rows = re.findall(r"<tr data-row=(\d+)>.*?<td class=name>([^<]+)</td>(.*?)(?=<tr|</table)", article, re.DOTALL)
            self.assertGreater(len(rows), 5)
            for number, name, cells in rows:
                self.assertRegex(table, rf"(?m)^ *{number} +{re.escape(html.unescape(name))}\b")
                # Nor is the last column cut off.
                for word in html.unescape(re.sub(r"<[^>]*>", " ", cells[cells.rindex("<td"):])).split():
                    self.assertIn(word, table)
            roofs = re.findall(r"<text class='rooflabel([^>]*)>([^<]+)</text>", article)
            for roof in (label for attributes, label in roofs if "rotate" not in attributes):
                self.assertIn(html.unescape(roof), text)

    def test_light_and_dark_are_drawn(self):
        pictures = []
        for theme in ("light", "dark"):
            picture = self.path.with_suffix(f".{theme}.png")
            self.browser(f"file://{self.path}#{theme}", "--window-size=1200,1600", f"--screenshot={picture}")
            pictures.append(picture.read_bytes())
            self.assertTrue(pictures[-1].startswith(b"\x89PNG"))
            self.assertGreater(len(pictures[-1]), 50_000, "an empty page")
        self.assertNotEqual(*pictures)


class CheckPage(Pages, unittest.TestCase):
    written, targets, plots = ["check", *MODEL, "--target", "h200,rdna3,avx512"], 3, 1


class ReportPage(Pages, unittest.TestCase):
    written, targets, plots = ["report", *MODEL, "--runs", "2"], 1, 2

    def test_it_shows_a_measured_run(self):
        rows = len(re.findall(r"<tr data-row=\d+>", self.text))
        self.assertEqual(len(re.findall(r"<rect class=use ", self.text)), rows)
        for part in ("Farthest from the roof", "Memory over time", "% roof", "candidates; next algorithm", "all of it: "):
            self.assertIn(part, self.text)

    def test_a_browser_sorts_its_own_columns(self):
        head = re.findall(r"<th [^>]*>([^<]*)</th>", self.text).index("% roof")
        dom = self.browser(f"file://{self.path}#sort={head}", "--dump-dom")
        rows = [re.findall(r"<td[^>]*>", row) for row in re.findall(r"<tr data-row=\"\d+\">.*?</tr>", dom)]
        shares = [float(re.search(r"data-v=\"([^\"]*)\"", cells[head]).group(1)) for cells in rows]
        self.assertGreater(len(shares), 3)
        self.assertEqual(shares, sorted(shares, reverse=True))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tests/command/pages_test.py SPARKLE")
    COMMAND = sys.argv.pop()
    unittest.main()
