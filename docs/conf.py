from __future__ import annotations

from typing import Any

import latex2mathml.converter
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

import adaptinf

logger = logging.getLogger(__name__)

project = "adaptinf"
author = "The adaptinf developers"
copyright = "2026, The adaptinf developers"
release = version = adaptinf.__version__

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
extensions += ["sphinx.ext.viewcode", "sphinx_copybutton"]
copybutton_selector = ", ".join(
    f"div.{name} pre" for name in ("highlight-python", "highlight-ipython3", "highlight-bash", "doctest")
)
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
exclude_patterns = ["_build", "jupyter_execute"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3

# The tutorials are notebooks: they run whenever the pages are built, and must run through.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

autosummary_generate = True
autosummary_imported_members = True  # rooms have faces, which import what they show
autosummary_ignore_module_all = False
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "none"  # the docstrings say types and shapes
default_role = "py:obj"  # a name in backquotes is code, and a link where it is public
numpydoc_show_class_members = False  # autodoc lists them
add_module_names = False

html_theme = "furo"
html_title = f"adaptinf {version}"
html_static_path = ["_static"]
html_css_files = ["adaptinf.css"]
html_math_renderer = "mathml"


# a bar as LaTeX sets it, without the space of an operator
_BAR = '<mo stretchy="false">&#x0007C;</mo>'


def _write_math(translator: Any, node: nodes.Element, display: str) -> None:
    formula = latex2mathml.converter.convert(node.astext(), display=display)
    formula = formula.replace(_BAR, _BAR.replace("<mo ", '<mo lspace="0" rspace="0" '))
    if "\\" in formula or "<mi>&</mi>" in formula:
        logger.warning("this formula does not become MathML: %s", node.astext(), location=node)
    translator.body.append(formula if display == "inline" else f'<div class="math">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    # MathML that browsers draw themselves: pages are whole without a network.
    app.add_html_math_renderer(
        "mathml",
        (lambda translator, node: _write_math(translator, node, "inline"), None),
        (lambda translator, node: _write_math(translator, node, "block"), None),
    )
