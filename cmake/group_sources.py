"""Which source files a compiler can take as one, as no name that a file defines for itself occurs twice: lines 'GROUP FILE'.

usage: group_sources.py MOST_FILES FILE...

Files stay in the order given, so neighbours, which include the same headers, come together. Those that include themselves once
per vector unit, or speak of one to the compiler, stay alone and are not printed.
"""

import re
import sys

ALONE = re.compile(r'HWY_TARGET_INCLUDE|x86_target\.h|dot_units|_IMPLEMENTATION')
DEFINED = re.compile(
    r'^(?:template <.*> *)?(?:struct|class|union|enum class|enum|using|#define) +(?:[\w:]+::)?(\w+)'  # types, aliases, macros
    r'|^(?!namespace|using|extern)[\w:][^;(={]*?[ &*>](\w+) *(?:[({=;]|\[)'  # functions and constants
    r'|^ *(\w+)\(.*[,{]$',  # functions whose head has more than one line
    re.MULTILINE)
NOT_NAMES = {'namespace', 'if', 'for', 'while', 'switch', 'return', 'TEST', 'TEST_F', 'TEST_P'}


def names(text: str) -> set[str]:
    """What stands at the beginning of lines outside classes and functions: every definition, if the code is formatted."""
    found = {name for match in DEFINED.finditer(text) for name in match.groups() if name}
    for line in re.findall(r'^constexpr .*', text, re.MULTILINE):  # several in one line
        found.update(re.findall(r'(\w+) *(?:\[\w*\])? = ', line))
    return found - NOT_NAMES


def main() -> None:
    most = int(sys.argv[1])
    groups: list[tuple[set[str], list[str]]] = []
    for path in sys.argv[2:]:
        with open(path, encoding='utf-8') as file:
            text = file.read()
        if ALONE.search(text):
            continue
        own = names(text)
        for taken, files in reversed(groups):
            if len(files) < most and not taken & own:
                taken |= own
                files.append(path)
                break
        else:
            groups.append((set(own), [path]))
    for index, (_, files) in enumerate(groups):
        for path in files:
            print(index, path)


main()
