"""The Python pages of the API reference: python_pages.py PACKAGES FOLDER writes a page for each public module of the package
`sparkle` below PACKAGES into FOLDER, for Sphinx. Exit 1 with a line for each public module, class, function, property or
method that has no docstring, and for each option and field that its docstring, or its class's, does
not name."""
import dataclasses
import importlib
import inspect
import pathlib
import re
import sys

from sphinx.ext.autodoc.mock import mock

import conf

# Another package's interface, whose options are described there.
OTHERS = "sparkle.ort"
HEAD = """The Python interface of Sparkle
===============================

What the package ``sparkle`` offers, module by module.

.. toctree::
   :maxdepth: 1

   {pages}

The interfaces for C and C++ are `beside these pages <c/index.html>`__.
"""


def modules(package):
    """Names of the package and of its modules that are public, found by their files."""
    files = sorted([p.stem for p in package.glob("*.py") if not p.stem.startswith("_")]
                   + [p.parent.name for p in package.glob("*/__init__.py")])
    return ["sparkle", *(f"sparkle.{name}" for name in files)]


def names_in(module):
    """What a module offers: its __all__, or what is defined there under a public name."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [name for name, of in vars(module).items() if not name.startswith("_")
            and getattr(of, "__module__", "") == module.__name__ and (inspect.isclass(of) or inspect.isfunction(of))]


def members_of(cls):
    """(name, function) of its own public methods and properties."""
    for name, of in vars(cls).items():
        if not name.startswith("_"):
            of = of.fget if isinstance(of, property) else getattr(of, "__func__", of)
            if inspect.isfunction(of):
                yield name, of


def unnamed(function, *texts):
    """Its options - parameters that have a default - that none of the texts names."""
    said = " ".join(t or "" for t in texts)
    if not inspect.isfunction(function) or function.__module__.startswith(OTHERS) or re.search(r"options are\s+those of", said):
        return []
    given = [p for p in inspect.signature(function).parameters.values() if p.default is not p.empty]
    return [p.name for p in given if not re.search(rf"\b{re.escape(p.name)}\b", said)]


def problems_of(name, of):
    if not (inspect.isclass(of) or inspect.isfunction(of)):
        return
    if not (of.__doc__ or "").strip():
        yield f"{name} has no docstring"
        return
    if dataclasses.is_dataclass(of):
        yield from (f"{name}: its docstring does not name the field {f.name}" for f in dataclasses.fields(of)
                    if not any(re.search(rf"\b{f.name}\b", base.__doc__ or "") for base in of.__mro__))
    else:
        called = vars(of).get("__init__") if inspect.isclass(of) else of
        for option in unnamed(called, of.__doc__, getattr(called, "__doc__", "")):
            yield f"{name}: its docstring does not name the option {option}"
    for member, function in members_of(of) if inspect.isclass(of) else ():
        inherited = any((getattr(base, member, None).__doc__ or "") for base in of.__mro__[1:] if hasattr(base, member))
        if not (function.__doc__ or "").strip() and not inherited:
            yield f"{name}.{member} has no docstring"
            continue
        for option in unnamed(function, function.__doc__, of.__doc__):
            yield f"{name}.{member}: no docstring names the option {option}"


def page(module, names):
    title = module.__name__
    parts = [title, "=" * len(title), "", f".. automodule:: {title}", "   :no-members:", ""]
    for name in names:
        of = getattr(module, name)
        if inspect.ismodule(of):  # as data it would show where its file lies
            parts += [f".. automodule:: {of.__name__}", "   :no-members:", ""]
            continue
        kind = "autoclass" if inspect.isclass(of) else "autofunction" if inspect.isfunction(of) else "autodata"
        parts += [f".. {kind}:: {title}.{name}",
                  *(["   :members:", "   :show-inheritance:"] if inspect.isclass(of) else []), ""]
    return "\n".join(parts)


def main(packages, folder):
    sys.path.insert(0, packages)
    folder = pathlib.Path(folder)
    problems, pages = [], []
    with mock(conf.autodoc_mock_imports):
        for name in modules(pathlib.Path(packages) / "sparkle"):
            module = importlib.import_module(name)
            if not (module.__doc__ or "").strip():
                problems.append(f"{name} has no docstring")
            names = names_in(module)
            for public in names:
                problems += problems_of(f"{name}.{public}", getattr(module, public))
            (folder / f"{name}.rst").write_text(page(module, names), encoding="utf-8")
            pages.append(name)
    (folder / "index.rst").write_text(HEAD.format(pages="\n   ".join(pages)), encoding="utf-8")
    print("\n".join(sorted(set(problems))), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
