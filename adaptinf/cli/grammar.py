"""Parsing of commands: help that begins with examples, one-sentence errors, and suggestions for typos."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from adaptinf.texts import ROOM, absent, did_you_mean, unlisted, visible

DONE, CONCERN, REFUSED, INTERRUPTED = 0, 1, 2, 130
"""Exit codes; the last is that of a shell after Ctrl-C."""
EXIT_CODES = (
    "Exit codes: 0 success; 1 a problem found under --strict, or by adaptinf qualify, trial verify or trial "
    "audit-noise; 2 refused."
)
_WIDEST = 100
_NEEDED = "the following arguments are required: "


class _Help(argparse.HelpFormatter):
    """Help whose list of commands is a separate table."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        commands = {each.dest: each.help or "" for each in action._get_subactions()}
        width = max(map(len, commands)) + 4
        lines = [
            textwrap.fill(
                said, self._width, initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width
            )
            for name, said in commands.items()
        ]
        return "\n".join([*lines, ""])


class CommandParser(argparse.ArgumentParser):
    """A command whose help begins with its purpose and examples."""

    def __init__(self, *, opening: str = "", examples: Iterable[str] = (), **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)
        self._opening, self._examples = opening, tuple(examples)

    def format_help(self) -> str:
        """The purpose of the command, examples, then its options."""
        width = min(_WIDEST, shutil.get_terminal_size().columns - 2)
        examples = "\n".join(["examples:", *(f"  {line}" for line in self._examples)])
        return "\n\n".join([textwrap.fill(self._opening, width), examples, super().format_help()])

    def error(self, message: str) -> NoReturn:
        """Describe the problem in one sentence, and where to find examples."""
        if message.startswith(_NEEDED):
            names = message.removeprefix(_NEEDED)
            message = f"{names} {'are' if ', ' in names else 'is'} required, as in {self._example}"
        self.exit(REFUSED, f"{self.prog}: {visible(message)}\nMore examples: {self.prog} --help\n")

    @property
    def _example(self) -> str:
        """The first example, in one line."""
        end = next((at for at, line in enumerate(self._examples) if not line.endswith("\\")), 0)
        return " ".join(line.rstrip("\\").strip() for line in self._examples[: end + 1])

    def parse(self, argv: Sequence[str] | None) -> argparse.Namespace:
        """The arguments; an unknown option is reported, with a suggestion."""
        arguments, unknown = self.parse_known_args(argv)
        if unknown:
            parser: CommandParser = arguments.parser
            options = [word for word in unknown if word.startswith("-")]
            parser.error("; ".join(map(parser._unknown, options or unknown)))
        return arguments

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"{word!r} is not understood here: files come first, and a value follows its option"
        name = word.partition("=")[0]
        return f"there is no option {name}{did_you_mean(name, self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            self.error(absent(str(action.metavar), value, list(action.choices)))
        self.error(unlisted(action.option_strings[0], list(action.choices), value))


def add_command(
    commands: Any, name: str, run: Any, *, short: str, opening: str, examples: Sequence[str], usage: str = ""
) -> CommandParser:
    """A command with its line in the list, the beginning of its help, examples and a usage line."""
    parser: CommandParser = commands.add_parser(
        name, help=short, opening=opening, examples=examples, epilog=EXIT_CODES
    )
    if usage:
        parser.usage = f"{parser.prog} {usage}"
    parser.set_defaults(run=run, parser=parser)
    return parser


def wrapped(line: str, indent: str = "  ") -> str:
    """An answer wrapped to 80 columns, with further lines indented slightly more."""
    own = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line, ROOM, subsequent_indent=own + indent, break_on_hyphens=False, break_long_words=False
    )


def tell(text: str) -> None:
    """Print a message separately from the output; do nothing if standard error is closed."""
    if sys.stderr is not None:  # If the stream were None, print would write to standard output instead.
        print(text, file=sys.stderr)


def print_help(arguments: argparse.Namespace) -> int:
    """Print the actions of a command, if none was requested."""
    print(arguments.parser.format_help().rstrip())
    return DONE


def path_of(text: str) -> Path:
    """Name of a file, which must not contain NUL."""
    return Path(place_of_text(text))


def place_of_text(text: str) -> str:
    """A path or an address such as sqlite:///trial.db, as typed."""
    if "\0" in text:
        raise argparse.ArgumentTypeError("the name of a file cannot contain NUL")
    return text


def seed(text: str) -> int:
    """Seed of a simulation."""
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


seed.__name__ = "seed"
