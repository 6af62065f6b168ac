"""Sphinx's settings for the Python part of the API reference (scripts/reference, which gives version and folders). Docstrings
are plain text with ``names`` and indented code; here that becomes reStructuredText."""

project = "Sparkle"
author = "The Sparkle project"
extensions = ["sphinx.ext.autodoc"]
autodoc_mock_imports = ["sparkle._core", "onnx", "ray", "starlette"]  # nothing is compiled or installed to read docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
# What signatures name and these pages do not describe: other packages' classes, and the compiled part.
nitpick_ignore_regex = [("py:.*", r"(os|numpy|onnx|enum|concurrent|collections)\..*"), ("py:.*", r"sparkle\.(ort\.)?_.*")]
html_theme = "alabaster"
html_theme_options = {"description": "The Python interface", "page_width": "72em", "sidebar_width": "14em"}
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_last_updated_fmt = None


def as_markup(app, what, name, of, options, lines):
    """An indented block behind a blank line is code: '::' stands before it, as the paragraph's end where that has a colon."""
    for at in range(len(lines) - 1, 0, -1):
        if not lines[at].startswith("    ") or lines[at - 1].strip():
            continue
        before = next((b for b in range(at - 1, -1, -1) if lines[b].strip()), None)
        if before is None or lines[before].startswith("    "):
            continue
        if lines[before].endswith(":"):
            lines[before] += ":"
        else:
            lines[at:at] = ["::", ""]


def setup(app):
    app.connect("autodoc-process-docstring", as_markup)
