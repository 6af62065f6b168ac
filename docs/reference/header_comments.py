"""Doxygen's filter for the headers of include/sparkle: header_comments.py FILE prints it with its comments in the forms that
Doxygen reads. A comment before a declaration and one behind it on its line belong to it, the one at the head to the file, a
line /* -- title -- */ begins a group. Comments in bodies stay plain. Lines keep their numbers."""
import pathlib
import re
import sys

SCOPE = re.compile(r"\s*(?:inline\s+)?(?:namespace|class|struct|union|enum|extern|typedef)\b|"
                   r"template\s*<[^>]*>\s*(?:class|struct)\b")
SECTION = re.compile(r"/\* -- (.*?) -+ \*/$")
INLINE_NAMESPACE = re.compile(r"inline namespace (\w+) \{$")
NAMES = re.compile(r"`([^`\n]+)`")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'')


class Scopes:
    """Which braces are open: of what declares, or of a function's body or an initialiser."""

    def __init__(self):
        self.open, self.statement = [], ""

    def read(self, code):
        """A line without its comments."""
        for c in STRING.sub("", code):
            if c == "{":
                self.open.append(bool(SCOPE.match(self.statement)) and "(" not in self.statement.split("{")[0])
            elif c == "}" and self.open:
                self.open.pop()
            self.statement = "" if c in "{};" else self.statement + c
        if code.lstrip().startswith("#") or code.rstrip().endswith(":"):
            self.statement = ""

    def declares(self):
        return all(self.open)


def blank(lines, number):
    return number >= len(lines) or not lines[number].strip()


def end_of(lines, number):
    """The line on which the comment that begins on this one ends."""
    if "/*" in lines[number]:
        while "*/" not in lines[number]:
            number += 1
        return number
    while number + 1 < len(lines) and lines[number + 1].lstrip().startswith("//"):
        number += 1
    return number


def group(lines, number, title, is_open):
    """A section's line and what says more of it right behind: a group of Doxygen."""
    name = "sparkle_" + re.sub(r"\W+", "_", title.split(":")[0].split(",")[0].strip().lower())
    lines[number] = f"{'/** @} */ ' if is_open else ''}/** @defgroup {name} {title[0].upper()}{title[1:]}"
    if blank(lines, number + 1):
        lines[number + 1] = "@{ */"
        return number + 1
    last = end_of(lines, number + 1)
    lines[number + 1] = lines[number + 1].replace("/*", "", 1)
    lines[last] = lines[last].replace("*/", "@{ */")
    return last


def documented(text, name):
    lines, scopes, inline, grouped, number = text.splitlines(), Scopes(), [], False, 0
    hidden_part = False  # behind `private:`
    trailing = None  # the column of a // comment behind code on the line before
    while number < len(lines):
        line, behind = lines[number], trailing
        trailing = None
        stripped = line.lstrip()
        if number == 0 and stripped.startswith(("//", "/*")):
            last = end_of(lines, 0)
            lines[0] = re.sub(r"^(//|/\*)", lambda m: ("///" if m[0] == "//" else "/**") + f" @file {name}", line)
            for at in range(1, last + 1):
                lines[at] = re.sub(r"^//", "///", lines[at])
            number = last
        elif (found := SECTION.match(line)):
            number, grouped = group(lines, number, found[1], grouped), True
        elif line == " private:":
            lines[number], hidden_part = line + "  /** @cond */", True
        elif line == "};" and hidden_part:
            lines[number], hidden_part = "/** @endcond */ };", False
            scopes.read(line)
        elif (found := INLINE_NAMESPACE.match(line)):
            inline.append(found[1])
            lines[number] = ""
        elif inline and line == f"}}  // namespace {inline[-1]}":
            inline.pop()
            lines[number] = ""
        elif stripped.startswith(("//", "/*")):
            last = end_of(lines, number)
            if stripped.startswith("//") and behind == len(line) - len(stripped):
                lines[number] = line.replace("//", "///<", 1)
                trailing = behind
                last = number
            elif scopes.declares() and not blank(lines, last + 1) and not lines[last + 1].lstrip().startswith(("}", "#if")):
                for at in range(number, last + 1):
                    lines[at] = re.sub(r"^(\s*)//", r"\1///", lines[at])
                lines[number] = re.sub(r"^(\s*)/\*", r"\1/**", lines[number])
            number = last
        else:
            hidden = STRING.sub(lambda m: "_" * len(m[0]), line)
            at = min((p for p in (hidden.find("//"), hidden.find("/*")) if p >= 0), default=-1)
            was = scopes.declares()
            scopes.read(line if at < 0 else line[:at])
            if at >= 0 and was and not line.startswith(("}", "#e")):
                c_form = line[at + 1] == "*"
                lines[number] = line[:at] + ("/**<" if c_form else "///<") + line[at + 2:]
                if c_form:
                    number = end_of(lines, number)
                else:
                    trailing = at
        number += 1
    text = NAMES.sub(lambda m: f"<tt>{m[1].replace('--', chr(92) + '--')}</tt>", "\n".join(lines) + "\n")
    return re.sub(r"\n\n(#ifdef __cplusplus\n\})", r"\n/** @} */\n\1", text) if grouped else text


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    sys.stdout.write(documented(path.read_text(encoding="utf-8"), path.name))
