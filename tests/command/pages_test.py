#!/usr/bin/env python3
"""The page that `sparkle check --html` writes: complete in itself, and alive in a browser without a screen.
tests/command/check_page_test.py SPARKLE; the browser's part is skipped where there is no chromium."""
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
TARGETS = ["h200", "rdna3", "avx512"]


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


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name) / "page.html"
        subprocess.run([COMMAND, "check", SOURCE / "models/upscale2x.onnx", "--shape", "image=1x3x270x480",
                        "--target", ",".join(TARGETS), "--html", cls.path], check=True, capture_output=True, timeout=120)
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
        self.assertEqual(tags.count("article"), len(TARGETS))
        self.assertEqual(tags.count("svg"), len(TARGETS))

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
        self.assertRegex(dom, r"<main class=\"tabs\">")
        self.assertRegex(dom, r"<article id=\"t1\" class=\"here\">")
        times = self.layer_times(dom[dom.index("<article"):].split("</article>")[0])
        self.assertGreater(len(times), 5)
        self.assertEqual(times, sorted(times, reverse=True))
        plain = self.browser(f"file://{self.path}", "--dump-dom")
        times = self.layer_times(plain[plain.index("<article"):].split("</article>")[0])
        self.assertNotEqual(times, sorted(times, reverse=True))

    def test_light_and_dark_are_drawn(self):
        pictures = []
        for theme in ("light", "dark"):
            picture = self.path.with_suffix(f".{theme}.png")
            self.browser(f"file://{self.path}#{theme}", "--window-size=1200,1600", f"--screenshot={picture}")
            pictures.append(picture.read_bytes())
            self.assertTrue(pictures[-1].startswith(b"\x89PNG"))
            self.assertGreater(len(pictures[-1]), 50_000, "an empty page")
        self.assertNotEqual(*pictures)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tests/command/check_page_test.py SPARKLE")
    COMMAND = sys.argv.pop()
    unittest.main()
