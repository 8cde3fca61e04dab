"""Configure Sphinx: `make docs` builds the site from these pages and from docstrings."""

import mgraph

project = "mgraph"
author = "the mgraph developers"
version = release = mgraph.__version__
extensions = ["sphinx.ext.autodoc", "numpydoc", "sphinx_click", "myst_parser"]
html_theme = "alabaster"
html_theme_options = {"description": "Graphs on GPUs and CPUs", "fixed_sidebar": True, "page_width": "1100px"}

# Pages are Markdown, read on their own too; the two that are made from the code, and the index, are not.
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3
# Code is named by its path, not linked.
default_role = "literal"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
