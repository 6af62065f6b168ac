#!/usr/bin/env python3
"""Examples that are wrong are found: each test plants one in a page of its own. tests/page_examples_test.py"""
import pathlib
import re
import tempfile
import unittest

import examples_test
import page_examples
from page_examples import Example, Wrong, examples_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = """# Page

```sh
true
```

<!-- not run: it needs a day -->
```sh
sleep 86400
```

```text
sparkle run MODEL
```
"""


class Examples(unittest.TestCase):
    def refused(self, text, sentence):
        with self.assertRaisesRegex(Wrong, sentence):
            examples_of(text, "page.md")

    def test_blocks_are_found_with_their_lines_and_reasons(self):
        first, second = examples_of(PAGE, "page.md")
        self.assertEqual((first.name, first.text, first.not_run), ("page.md:4", "true\n", ""))
        self.assertEqual((second.name, second.not_run), ("page.md:9", "it needs a day"))

    def test_marks_without_a_reason_a_block_or_a_meaning(self):
        self.refused(PAGE.replace(" it needs a day", ""), "page.md:7: a block that is not run needs a reason")
        self.refused(PAGE.replace("-->\n", "-->\n\n"), "page.md:7: no block stands below this mark")
        self.refused(PAGE.replace("not run: it needs a day", "needs: luck"), "page.md:7: nothing tells whether 'luck' is there")

    def test_blocks_that_would_not_be_run(self):
        self.refused(PAGE.replace("```sh\nt", "```\nt"), "page.md:3: the block is written in ''")
        self.refused(PAGE.replace("```sh\nt", "```bash\nt"), "page.md:3: the block is written in 'bash'")
        self.refused(PAGE[:-4], "page.md:13: the block has no end")
        for line in ("sparkle run MODEL", "$ sparkle devices", "sparkle::Device device;", 'sparkle.Session("x")',
                     "pip install ."):
            self.refused(f"# Page\n\n    {line}\n", "page.md:3: an example without a fence is not run")

    def test_printed_results_are_no_examples(self):
        made = "<!-- figures: sample one.json -->\n\n    $ sparkle devices\n\n<!-- end of figures -->\n"
        self.assertEqual(examples_of(made, "p"), [])
        self.assertEqual(examples_of("    sparkle: column 5: there is no function 'slu'\n", "p"), [])

    def test_the_first_wrong_line_of_a_shell_block_fails_it(self):
        with tempfile.TemporaryDirectory() as folder:
            shell = [examples_test.run_shell(Example("page.md", 3, "sh", text), folder, {})
                     for text in ("true\n", "false\ntrue\n", "false | true\n", "echo $unset_variable\n")]
        self.assertEqual(shell[0], "")
        for wrong in shell[1:]:
            self.assertIn("status 1", wrong)

    def test_cpp_blocks_are_one_program_and_each_main_its_own(self):
        parts = [Example("page.md", 3, "cpp", "#include <cstdio>\nint x = 1;\n"), Example("page.md", 9, "cpp", "x = 2;\n"),
                 Example("page.md", 12, "c", "int main(void) { return 0; }\n"),
                 Example("page.md", 20, "cpp", "int main() {}\n")]
        self.assertEqual([len(p) for p in examples_test.programs(parts)], [2, 1, 1])
        made = examples_test.program(parts[:2])
        self.assertLess(made.index("#include <cstdio>"), made.index("int main() {"))
        self.assertIn('#line 9 "page.md"\nx = 2;', made)

    def test_the_project_has_examples_in_each_language(self):
        found = page_examples.examples(ROOT)
        for language in page_examples.RUN:
            self.assertTrue([e for e in found if e.language == language and not e.not_run], language)

    def test_links_of_the_pages_lead_to_files(self):
        for page in [*page_examples.pages(ROOT), *sorted((ROOT / "docs" / "decisions").glob("*.md"))]:
            for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", page.read_text(encoding="utf-8")):
                self.assertTrue(re.match("https?:", link) or (page.parent / link).exists(), f"{page.name}: {link}")


if __name__ == "__main__":
    unittest.main()
