"""The examples of README.md and docs/*.md: fenced blocks, what each is written in, and why one is not run.

    ```sh                          run in order, all of a page in one folder
    <!-- not run: REASON -->       on the line above the block
    <!-- needs: a Vulkan device -->    run where it is there; or PyTorch, for Python

`sh`, `cpp`, `c`, `cmake` and `python` are run by tests/examples_test.py and tests/python/test_page_examples.py; `text` is what
a program prints, or a pattern to fill in. Anything else is an error, so that no example goes untested in silence."""
import dataclasses
import pathlib
import re

RUN = ("sh", "cpp", "c", "cmake", "python")
SHOWN = ("text",)
NEEDS = ("a Vulkan device", "PyTorch")
FENCE = re.compile(r"^```(\S*)$")
MARK = re.compile(r"^<!-- (not run|needs): ?(.*?) ?-->$")
# What lies beside the examples, as in a clone.
BESIDE = ("models", "shapes", "devices", "tests")


class Wrong(Exception):
    pass


@dataclasses.dataclass
class Example:
    page: str
    line: int  # of the first line inside the fence
    language: str
    text: str
    not_run: str = ""
    needs: str = ""

    @property
    def name(self):
        return f"{self.page}:{self.line}"


def pages(root):
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def examples_of(text, page):
    """All blocks of a page in their order."""
    lines, found, inside, mark, made = text.splitlines(), [], None, None, False
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if inside is not None:
            if line == "```":
                found.append(inside)
                inside = None
            else:
                inside.text += line + "\n"
        elif fence:
            if fence[1] not in RUN + SHOWN:
                raise Wrong(f"{page}:{number}: the block is written in '{fence[1]}'; say one of {', '.join(RUN + SHOWN)}")
            inside = Example(page, number + 1, fence[1], "")
            if mark and mark[1] == "not run":
                inside.not_run = mark[2]
            elif mark:
                inside.needs = mark[2]
        elif re.match(r"^<!-- (figures|quoted): ", line):
            made = True  # written from a result: a command of another hour, printed as it was
        elif line.startswith("<!-- end of figures"):
            made = False
        elif not made and re.match(r"^ {4,}(\$ )?(sparkle( |::|\.\w+\()|(pip|cmake|import) )", line):
            raise Wrong(f"{page}:{number}: an example without a fence is not run: {line.strip()}")
        mark = None if inside is None and fence else MARK.match(line)
        if mark and not mark[2]:
            raise Wrong(f"{page}:{number}: a block that is not run needs a reason")
        if mark and mark[1] == "needs" and mark[2] not in NEEDS:
            raise Wrong(f"{page}:{number}: nothing tells whether '{mark[2]}' is there; known is {', '.join(NEEDS)}")
        if mark and not (number < len(lines) and FENCE.match(lines[number])):
            raise Wrong(f"{page}:{number}: no block stands below this mark")
    if inside is not None:
        raise Wrong(f"{page}:{inside.line}: the block has no end")
    return [e for e in found if e.language in RUN]


def examples(root):
    return [e for page in pages(root)
            for e in examples_of(page.read_text(encoding="utf-8"), page.relative_to(root).as_posix())]


def fill(folder, root):
    """What examples read lies beside them; what they write stays in the folder."""
    for name in BESIDE:
        (pathlib.Path(folder) / name).symlink_to(root / name)
