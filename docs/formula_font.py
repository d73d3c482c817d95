"""Cut STIX Two Math down to what formulas need, so pages draw them without a network.

    npm pack @fontsource/stix-two-math && tar xzf fontsource-stix-two-math-*.tgz
    python docs/formula_font.py package/files/stix-two-math-latin-400-normal.woff2

Writes _static/formulas.woff2, and prints the line ``unicode-range`` of _static/adaptinf.css. Building the
pages warns of a formula with a character outside of it. Needs fontTools and brotli; the font's licence is
_static/formulas_license.txt.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import subset

STATIC = Path(__file__).resolve().parent / "_static"
RANGES = (
    (0x20, 0x7E),  # letters and digits
    (0xA0, 0xFF),
    (0x2C6, 0x2DD),  # accents
    (0x302, 0x304),
    (0x391, 0x3F6),  # Greek
    (0x2010, 0x2057),  # bars, dots, primes
    (0x2100, 0x214F),  # letters that have a place of their own
    (0x2190, 0x22FF),  # arrows and operators
    (0x2308, 0x230B),  # floors and ceilings
    (0x239B, 0x23AE),  # parts of tall brackets
    (0x23DC, 0x23DF),
    (0x25FB, 0x25FB),
    (0x27E6, 0x27FF),  # angles and long arrows
    (0x2AAF, 0x2AB0),
    (0x1D434, 0x1D467),  # italic
    (0x1D49C, 0x1D4B5),  # script
    (0x1D538, 0x1D551),  # blackboard bold
    (0x1D6A4, 0x1D71B),  # italic Greek
)


def cut(source: str, target: Path) -> None:
    """Write the part of a font that has these characters, with what stretches them."""
    options = subset.Options(flavor="woff2", hinting=False, layout_features=["ssty"])
    font = subset.load_font(source, options)
    part = subset.Subsetter(options)
    part.populate(unicodes=[code for first, last in RANGES for code in range(first, last + 1)])
    part.subset(font)
    subset.save_font(font, str(target), options)


if __name__ == "__main__":
    cut(sys.argv[1], STATIC / "formulas.woff2")
    print("unicode-range:", ", ".join(f"U+{a:X}-{b:X}" if b > a else f"U+{a:X}" for a, b in RANGES) + ";")
