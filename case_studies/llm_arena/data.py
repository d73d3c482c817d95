"""The table of win rates: fetched once from its public repository, which states no licence; not copied."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from pathlib import Path

import pandas as pd

COMMIT = "735307d55a8b4375e4a43d4e65076e5af5e7f658"
SOURCE = f"https://raw.githubusercontent.com/tijana-zrnic/winners-curse/{COMMIT}/data/"
TABLE = "chatbot_arena_win_rate.csv"
SHA256 = "62faeff5038d3ab308b989dd479426e2469d9c7047fec5fac4f1a4d8f33d3515"


class DataMissingError(RuntimeError):
    """The table is neither in the cache nor to be had, or it is another one."""


def table(cache: Path) -> pd.DataFrame:
    """A row a model, with its win rate and the standard error of the source.

    Raises
    ------
    DataMissingError
        If the table cannot be fetched, or is not the one that this study was written for.
    """
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / TABLE
    if not path.is_file():
        try:
            with urllib.request.urlopen(SOURCE + TABLE, timeout=60) as answer:
                path.write_bytes(answer.read())
        except (urllib.error.URLError, TimeoutError) as error:
            raise DataMissingError(
                f"{TABLE} is not in {cache} and could not be fetched: {error}\n"
                f"Put {SOURCE}{TABLE} (7 kB) into {cache}, or name the folder that has it with --cache."
            ) from error
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256:
        raise DataMissingError(f"{path} has the sha256 {found}, not {SHA256}: delete it and run again.")
    return pd.read_csv(path)[["LLM", "win_rate", "sigma"]]
