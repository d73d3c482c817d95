from __future__ import annotations

import html
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
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
html_js_files = ["scrolling.js"]
html_search_scorer = str(Path(__file__).parent / "_static" / "search_scorer.js")
html_math_renderer = "mathml"


# the characters of the formulas' font, as the style sheet tells a browser
_STYLES = (Path(__file__).parent / "_static" / "adaptinf.css").read_text(encoding="utf-8")
_PARTS = re.findall(r"U\+([0-9A-F]+)(?:-([0-9A-F]+))?", _STYLES)
_FONT = {code for first, last in _PARTS for code in range(int(first, 16), int(last or first, 16) + 1)}

# a bar as LaTeX sets it, without the space of an operator
_BAR = '<mo stretchy="false">&#x0007C;</mo>'


def _write_math(translator: Any, node: nodes.Element, display: str) -> None:
    formula = latex2mathml.converter.convert(node.astext(), display=display)
    formula = formula.replace(_BAR, _BAR.replace("<mo ", '<mo lspace="0" rspace="0" '))
    if "\\" in formula or "<mi>&</mi>" in formula:
        logger.warning("this formula does not become MathML: %s", node.astext(), location=node)
    told = html.unescape(re.sub(r"<[^>]+>", "", formula))
    if missing := {char for char in told if ord(char) not in _FONT}:
        logger.warning("the font of formulas has no %s", "".join(sorted(missing)), location=node)
    translator.body.append(formula if display == "inline" else f'<div class="math">{formula}</div>\n')
    raise nodes.SkipNode


_WHOLE = re.compile(r"(\d{4}-\d\d-\d\d|\d[\d.]*e-\d+)")  # what must not break at its hyphens


def _whole_numbers(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Dates and numbers with an exponent are on one line of a table's cell, however narrow."""
    for entry in tree.findall(nodes.entry):
        for text in list(entry.findall(nodes.Text)):
            parts = _WHOLE.split(text.astext())
            if len(parts) > 1 and not isinstance(text.parent, nodes.literal | nodes.math):
                marked = [
                    nodes.inline("", part, classes=["whole"]) if place % 2 else nodes.Text(part)
                    for place, part in enumerate(parts)
                    if part
                ]
                text.parent.replace(text, marked)


class IndexEntriesOfSections(SphinxTransform):
    """An index entry of a page leads to its section, so that the search shows the section's text."""

    default_priority = 800  # before entries are collected

    def apply(self, **kwargs: Any) -> None:
        for index in list(self.document.findall(addnodes.index)):
            target = index.next_node(nodes.target, descend=False, siblings=True)
            if target is None or target.get("refid") != index["entries"][0][2]:
                continue  # of a docstring, which has a place of its own
            after = target.next_node(descend=False, siblings=True, ascend=True)
            section = after if isinstance(after, nodes.section) else target.parent
            place = section["ids"][0]
            index["entries"] = [(kind, words, place, *rest) for kind, words, _, *rest in index["entries"]]


def _plain_captions(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Captions of the side bar are before the first heading of the page, so they are none themselves."""
    name = "furo_navigation_tree"
    context[name] = context.get(name, "").replace(' role="heading"', "")


def _describe_frame(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """The reference of a picture says which columns its frame has, and what the frame takes."""
    frame = getattr(obj, "frame", None)
    if what == "function" and callable(frame):
        text = inspect.cleandoc(frame.__doc__ or "")
        columns = textwrap.dedent(text.partition("DataFrame\n")[2].partition("\n\nRaises")[0])
        taken = ", ".join(inspect.signature(frame).parameters)
        call = f"{obj.__name__}.frame({taken})"
        lines += ["", f".. rubric:: {call}", "", *columns.splitlines(), ""]


class DarkFigures(SphinxTransform):
    """A figure that has a sister for dark screens, name_dark.svg, gives way to it there."""

    default_priority = 200  # before the images of a page are collected

    def apply(self, **_: Any) -> None:
        """Put the sister after the figure; the theme shows one of them."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in list(self.document.findall(nodes.image)):
            place = Path(image["uri"])
            sister = place.with_stem(f"{place.stem}_dark")
            if place.suffix == ".svg" and (folder / sister).exists():
                dark = image.deepcopy()
                dark["uri"] = sister.as_posix()
                image["classes"].append("only-light")
                dark["classes"].append("only-dark")
                image.parent.insert(image.parent.index(image) + 1, dark)


def setup(app: Sphinx) -> None:
    app.add_transform(IndexEntriesOfSections)
    app.add_transform(DarkFigures)
    app.connect("autodoc-process-docstring", _describe_frame, priority=900)  # after numpydoc
    app.connect("doctree-resolved", _whole_numbers)
    app.connect("html-page-context", _plain_captions, priority=900)  # after the theme has made the side bar
    # MathML that browsers draw themselves: pages are whole without a network.
    app.add_html_math_renderer(
        "mathml",
        (lambda translator, node: _write_math(translator, node, "inline"), None),
        (lambda translator, node: _write_math(translator, node, "block"), None),
    )
