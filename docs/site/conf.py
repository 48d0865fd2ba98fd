"""How Sphinx makes the site of the executed notebooks; tri_memory/lab/build_site.py calls it."""

project = "tri_memory"
html_title = "tri_memory"
extensions = ["myst_nb"]
nb_execution_mode = "off"
html_theme = "sphinx_book_theme"
html_theme_options = {"show_toc_level": 2, "use_download_button": False}
html_show_copyright = html_show_sphinx = False
