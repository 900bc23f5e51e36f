import driftline

project = "Driftline"
author = "The Driftline authors"
version = release = driftline.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}
html_theme = "pydata_sphinx_theme"
html_theme_options = {"header_links_before_dropdown": 5}
html_sidebars = {"*": []}  # pages on the first level have no others below them
exclude_patterns = ["_build", "sg_execution_times.rst"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
