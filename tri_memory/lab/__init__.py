"""What only notebooks need: data sets, measurements, plots, panels, exercises.

Its packages are looked for here, so that a lesson's first import says in one line what is missing.
"""

from importlib.util import find_spec

import tri_memory

for _package in ("numpy", "regex", "pandas", "matplotlib", "ipywidgets", "IPython"):
    try:
        if find_spec(_package) is None:
            raise ModuleNotFoundError(name=_package)
    except ModuleNotFoundError as error:
        raise tri_memory.missing_package(error) from None
