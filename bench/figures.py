"""Speeds in README.md and docs: where they come from, and whether text and result agree.

A text holds figures in two ways only, both traced to a file of bench/results:

    <!-- figures: MAKER FILE... -->        what `scripts/update_figures` writes from the files, up to the next line
    <!-- end of figures -->
    [1.27](../bench/results/FILE.json#MEMBER/MEMBER)      one number of a file, rounded to as many digits as are written

and what others once published or a plan predicts, which cannot be measured here, between `<!-- quoted: REASON -->` and
`<!-- end of figures -->`.
Anything else that reads like a speed is an error, and so is a file without a whole certificate."""
import json
import pathlib
import re
import subprocess

from tables import makers

BEGIN = re.compile(r"^<!-- figures: (\S+)((?: \S+)*) -->$")
QUOTED = re.compile(r"^<!-- quoted: (.+) -->$")
END = "<!-- end of figures -->"
CITED = re.compile(r"\[([^\]\[]*)\]\(([^)\s]*bench/results/[^)\s#]+\.json)#([^)\s]+)\)")
# What reads like a measured speed: a number and a unit of time or of a rate, a share of a peak, a factor.
NUMBER = r"(?<![\w.])\d[\d,]*(?:\.\d+)?"
SPEED = re.compile(NUMBER + r" ?(?:ms|us|µs|ns|TFLOP/s|GFLOP/s|MFLOP/s|T[fF]/s|G[fF]/s|TB/s|GB/s|MB/s|images/s|frames/s)\b"
                   "|" + NUMBER + r" ?(?:%|per ?cent) (?:of (?:the |its |their )?(?:\w+ )?(?:peak|roof|time)|faster|slower)"
                   "|" + NUMBER + r" times (?:as (?:fast|long|slow)|faster|slower|onnxruntime)"
                   "|" + NUMBER + r"x (?:faster|slower)\b", re.I)
# Headings of columns whose bare numbers are speeds.
SPEED_HEAD = re.compile(r"\b(?:ms|us|ns|GFLOP/s|TFLOP/s|GB/s|ratio|factor|speedup|measured|times)\b"
                        r"|% ?(?:of )?(?:the )?(?:\w+ )?(?:peak|roof|time)", re.I)
NOWHERE = "comes from no file of bench/results"
# What reads like a speed and is none: limits that the code sets, rules of a decision. (page, text): why.
NOT_MEASURED = {
    ("docs/decisions/0011-tuning.md", "1.3 times slower"): "a limit of the tuner",
    ("docs/decisions/0011-tuning.md", "7.5 % slower"): "a limit of the tuner",
    ("docs/decisions/0011-tuning.md", "1.5 % slower"): "a limit of the tuner",
    ("docs/decisions/0013-vulkan.md", "2 ms"): "how long a self-test is made",
    ("docs/decisions/0013-vulkan.md", "1.1 times as long"): "a limit of the self-tests",
}
CERTIFICATE = ("command", "commit", "clean", "date", "cpu", "versions")


class Wrong(Exception):
    pass


def name_of(link):
    return pathlib.PurePosixPath(link).name


def bare_columns(lines):
    """(line, heading) of columns of tables that are headed by a unit of speed and hold numbers."""
    for at in range(len(lines) - 1):
        if lines[at].startswith("|") and re.match(r"^\|[-:| ]+\|$", lines[at + 1]):
            heads = [cell.strip() for cell in lines[at].strip().strip("|").split("|")]
            for column, head in enumerate(heads):
                below = at + 2
                while SPEED_HEAD.search(head) and below < len(lines) and lines[below].startswith("|"):
                    cells = [cell.strip() for cell in lines[below].strip().strip("|").split("|")]
                    if column < len(cells) and re.match(r"[\d*]*\d", CITED.sub("", cells[column])):
                        yield at, head
                        break
                    below += 1


def load(root, file):
    path = root / "bench" / "results" / file
    if not path.is_file():
        raise Wrong(f"bench/results/{file} is not there; measure it again or take the figure out")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Wrong(f"bench/results/{file} is not JSON: {error}") from error


def is_known(root, commit):
    """Whether the commit is one that this history stands on; None where the history is not here (a shallow clone)."""
    def ask(*words):
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    shallow = ask("rev-parse", "--is-shallow-repository")
    if shallow.returncode != 0 or shallow.stdout.strip() == "true":
        return None
    return ask("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def certificate_problems(root, name, result):
    """What is wrong with how a result came about."""
    made = result.get("certificate") if isinstance(result, dict) else None
    if not isinstance(made, dict):
        return [f"bench/results/{name}: it has no certificate; only `sparkle bench` and bench/certificate.py write results"]
    problems = [f"bench/results/{name}: its certificate does not say '{key}'" for key in CERTIFICATE
                if made.get(key) in (None, "", {})]
    commit = str(made.get("commit", ""))
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        problems.append(f"bench/results/{name}: '{commit}' is no commit")
    elif is_known(root, commit) is False:
        problems.append(f"bench/results/{name}: the commit {commit[:12]} is not in this history")
    if made.get("clean") is not True:
        problems.append(f"bench/results/{name}: it was measured on a tree that differed from its commit")
    return problems


def member(value, path):
    for word in path.split("/"):
        if isinstance(value, list):
            found = [v for v in value if isinstance(v, dict) and word in (v.get("name"), v.get("network"), v.get("level"))]
            value = value[int(word)] if word.isdigit() and int(word) < len(value) else found[0] if found else None
        else:
            value = value.get(word) if isinstance(value, dict) else None
        if value is None:
            raise Wrong(f"the file has no '{path}'")
    return value


def cited_text(root, file, path, written):
    """The number as it should be written: with the digits behind the point that the text has."""
    value = member(load(root, file), path)
    if isinstance(value, str):
        return value
    digits = len(written.partition(".")[2]) if re.fullmatch(r"-?[\d,]+(?:\.\d+)?", written) else 2
    return f"{value:.{digits}f}"


def made_lines(root, maker, files):
    make = getattr(makers, "make_" + maker.replace("-", "_"), None)
    if make is None:
        raise Wrong(f"there is no maker of figures '{maker}'")
    results = [load(root, file) for file in files]
    try:
        return make(root, results, files)
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        raise Wrong(f"{', '.join(files)} lacks what '{maker}' tells: {error!r}") from error


def parts(text):
    """('text', first line, lines), ('figures', line, lines, maker, files) and ('quoted', line, lines, reason)."""
    lines, plain, start, i = text.splitlines(), [], 1, 0
    while i < len(lines):
        begin, quoted = BEGIN.match(lines[i]), QUOTED.match(lines[i])
        if not begin and not quoted:
            if not plain:
                start = i + 1
            plain.append(lines[i])
            i += 1
            continue
        yield ("text", start, plain)
        plain = []
        end = next((j for j in range(i + 1, len(lines))
                    if lines[j] == END or BEGIN.match(lines[j]) or QUOTED.match(lines[j])), len(lines))
        if end == len(lines) or lines[end] != END:
            raise Wrong(f"line {i + 1}: the figures that begin here have no '{END}'")
        if begin:
            yield ("figures", i + 1, lines[i + 1:end], begin[1], begin[2].split())
        else:
            yield ("quoted", i + 1, lines[i + 1:end], quoted[1])
        i = end + 1
    yield ("text", start, plain)


def pages(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def check_page(root, page):
    """(problems, blocks, citations, files cited)"""
    name, problems, blocks, citations, used = str(page.relative_to(root)), [], 0, 0, set()
    try:
        for part in parts(page.read_text(encoding="utf-8")):
            if part[0] == "figures":
                blocks += 1
                used.update(part[4])
                try:
                    if made_lines(root, part[3], part[4]) != part[2]:
                        problems.append(f"{name}:{part[1]}: the figures of '{part[3]}' are not those of "
                                        f"{', '.join(part[4])}; run scripts/update_figures")
                except Wrong as error:
                    problems.append(f"{name}:{part[1]}: {error}")
            elif part[0] == "text":
                for number, line in enumerate(part[2], part[1]):
                    for written, file, path in CITED.findall(line):
                        citations += 1
                        used.add(name_of(file))
                        try:
                            right = cited_text(root, name_of(file), path, written)
                            if right != written:
                                problems.append(f"{name}:{number}: '{written}' is {right} in {file}#{path}")
                            if not (page.parent / file).is_file():
                                problems.append(f"{name}:{number}: the link {file} leads nowhere")
                        except Wrong as error:
                            problems.append(f"{name}:{number}: {error}")
                    bare = re.sub(r"^ {4}.*--.*$", "", CITED.sub("", line))  # a command line's settings
                    for found in SPEED.finditer(bare):
                        if (name, found[0]) not in NOT_MEASURED:
                            problems.append(f"{name}:{number}: '{found[0]}' {NOWHERE}: {line.strip()[:70]}")
                problems += [f"{name}:{part[1] + at}: the column '{head}' {NOWHERE}" for at, head in bare_columns(part[2])]
    except Wrong as error:
        problems.append(f"{name}: {error}")
    return problems, blocks, citations, used


def check(root):
    """(problems, what was looked at)"""
    problems, blocks, citations, used = [], 0, 0, set()
    for page in pages(root):
        wrong, b, c, files = check_page(root, page)
        problems, blocks, citations, used = problems + wrong, blocks + b, citations + c, used | files
    results = sorted((root / "bench" / "results").glob("*.json"))
    for file in results:
        try:
            problems += certificate_problems(root, file.name, load(root, file.name))
        except Wrong as error:
            problems.append(str(error))
        if file.name not in used:
            problems.append(f"bench/results/{file.name}: no text says anything of it")
    return problems, f"{blocks} tables, {citations} numbers in sentences, {len(results)} result files"


def update(root):
    """Writes all blocks and citations anew; gives the pages that changed."""
    changed = []
    for page in pages(root):
        text, lines = page.read_text(encoding="utf-8"), []
        for part in parts(text):
            if part[0] == "figures":
                lines += [f"<!-- figures: {' '.join([part[3], *part[4]])} -->", *made_lines(root, part[3], part[4]), END]
            elif part[0] == "quoted":
                lines += [f"<!-- quoted: {part[3]} -->", *part[2], END]
            else:
                lines += [CITED.sub(lambda m: f"[{cited_text(root, name_of(m[2]), m[3], m[1])}]({m[2]}#{m[3]})", line)
                          for line in part[2]]
        after = "\n".join(lines) + "\n"
        if after != text:
            page.write_text(after, encoding="utf-8")
            changed.append(str(page.relative_to(root)))
    return changed
