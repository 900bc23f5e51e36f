import driftline

project = "Driftline"
author = "The Driftline authors"
version = release = driftline.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
