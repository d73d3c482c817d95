"""``adaptinf power``: the power of a planned analysis, and the number of participants that it needs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adaptinf.cli.grammar import DONE, add_command, seed
from adaptinf.cli.options.asked_options import add_alpha
from adaptinf.cli.options.design_options import PARAMETERS, design_of, json_of
from adaptinf.cli.options.output_options import add_output_options, form_of, json_text, place_problems, put
from adaptinf.errors import ParameterError
from adaptinf.texts import csv_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adaptinf.audit import OperatingCharacteristics, Power, SampleSize
    from adaptinf.log import AdaptiveLog


def add_power(commands: Any, short: str) -> None:
    """Add ``adaptinf power``."""
    parser = add_command(
        commands,
        "power",
        power,
        short=short,
        opening="Simulate a planned trial: how often its analysis rejects at the given horizons, or the "
        "smallest horizon with a given power. Arms are 0, 1, ... in the order of their means; the "
        "analysis is the difference between arms 1 and 0 unless specified otherwise.",
        examples=(
            "adaptinf power --means 0.25 0.45 --horizon 100 200 400",
            "adaptinf power --design Thompson --parameters '{\"floor\": 0.1}' \\",
            "    --means 0.25 0.25 --means 0.25 0.45 --horizon 200 --characteristics",
            "adaptinf power --means 0 0.5 --sd 1 --power 0.9",
        ),
        usage="--means M M... (--horizon N... | --power P) [options]",
    )
    plan = parser.add_argument_group("plan")
    plan.add_argument("--design", default="Uniform", metavar="NAME", help="such as Thompson (Uniform)")
    plan.add_argument("--parameters", type=json_of, default={}, metavar="JSON", help=PARAMETERS)
    plan.add_argument(
        "--means",
        action="append",
        nargs="+",
        type=float,
        required=True,
        metavar="NUMBER",
        help="mean reward of each arm, success probabilities unless --sd is given; repeated for several "
        "scenarios",
    )
    plan.add_argument(
        "--sd", type=float, metavar="NUMBER", help="normal rewards with this standard deviation"
    )
    sizes = plan.add_mutually_exclusive_group(required=True)
    sizes.add_argument(
        "--horizon",
        nargs="+",
        type=int,
        metavar="N",
        help="number of participants; if several are given, they are compared",
    )
    sizes.add_argument(
        "--power", type=float, metavar="NUMBER", help="find the smallest horizon with this power"
    )
    _add_analysis(parser.add_argument_group("analysis"))
    simulation = parser.add_argument_group("simulation")
    simulation.add_argument("--replications", type=int, default=1000, metavar="N", help="trials (1000)")
    simulation.add_argument("--rng", type=seed, default=0, metavar="SEED", help="seed (0)")
    simulation.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="number of processes (1); -1 for all cores"
    )
    add_output_options(parser)


def _add_analysis(analysis: Any) -> None:
    analysis.add_argument("--treatment", type=int, default=1, metavar="ARM", help="minuend (1)")
    analysis.add_argument("--control", type=int, default=0, metavar="ARM", help="subtrahend (0)")
    analysis.add_argument("--estimator", metavar="NAME", help="as for adaptinf analyze")
    analysis.add_argument(
        "--null", type=float, metavar="NUMBER", help="difference under the null hypothesis (0)"
    )
    add_alpha(analysis, "level of the two-sided test (0.05)")
    analysis.add_argument(
        "--characteristics",
        action="store_true",
        help="the table for a protocol: allocation, rewards and selection as well as error rates",
    )


@dataclass(frozen=True)
class Analysis:
    """The difference between two arms; `done` is called after each result."""

    treatment: int
    control: int
    estimator: str | None
    done: Callable[[], Any] = field(default=lambda: None, compare=False)

    def __call__(self, log: AdaptiveLog) -> Any:
        """The result for a log."""
        from adaptinf.inference.arms import Contrast

        chosen: dict[str, Any] = {} if self.estimator is None else {"estimator": self.estimator}
        fitted = Contrast(log, treatment=self.treatment, control=self.control).fit(**chosen)
        self.done()
        return fitted


@contextmanager
def _progress(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Counts trials, if standard error is a terminal and the trials are simulated in this process."""
    from tqdm import tqdm

    if arguments.jobs != 1:
        yield {}
        return
    cells = len(arguments.means) * len(arguments.horizon or ())
    total = cells * arguments.replications or None
    with tqdm(total=total, unit=" trials", disable=None, leave=False) as bar:
        yield {"done": bar.update}


def power(arguments: argparse.Namespace) -> int:
    """Simulate, and print or write the table."""
    problems = place_problems(arguments, [])
    if arguments.power is not None and (len(arguments.means) > 1 or arguments.characteristics):
        problems.append("--power examines one scenario: give --means once, without --characteristics")
    if problems:
        raise ParameterError("arguments", problems)
    design = design_of(arguments.design, arguments.parameters)
    scenarios = {_name(means): _arms(means, arguments.sd) for means in arguments.means}
    with _progress(arguments) as counter:
        plan = _simulated(arguments, design, scenarios, counter)
    put(arguments, _rendered(plan, form_of(arguments)))
    return DONE


def _name(means: list[float]) -> str:
    return " ".join(f"{mean:g}" for mean in means)


def _arms(means: list[float], sd: float | None) -> Any:
    from adaptinf.simulation.environments import BernoulliArms, NormalArms

    return BernoulliArms(means) if sd is None else NormalArms(means, sd)


def _simulated(
    arguments: argparse.Namespace, design: Any, scenarios: dict[str, Any], counter: dict[str, Any]
) -> Power | SampleSize | OperatingCharacteristics:
    from adaptinf import audit

    analysis = Analysis(arguments.treatment, arguments.control, arguments.estimator, **counter)
    common = {"rng": arguments.rng, "null": arguments.null, "alpha": arguments.alpha}
    common |= {"replications": arguments.replications, "n_jobs": arguments.jobs}
    if arguments.power is not None:
        [alternative] = scenarios.values()
        return audit.sample_size(design, alternative, analysis, arguments.power, **common)
    if arguments.characteristics:
        horizon, runs = arguments.horizon, common.pop("replications")
        return audit.operating_characteristics(design, scenarios, horizon, runs, fit=analysis, **common)
    return audit.power(design, scenarios, analysis, arguments.horizon, **common)


def _rendered(plan: Power | SampleSize | OperatingCharacteristics, form: str) -> str:
    if form == "csv":
        return csv_text(plan.frame).rstrip("\n")
    if form == "json":
        facts = {"design": plan.design, "alpha": plan.alpha, "replications": plan.replications}
        return json_text({**facts, "rows": plan.frame.to_dict("records"), "notes": list(plan.notes)})
    forms: dict[str, Callable[[], str]] = {
        "text": plan.__str__,
        "markdown": plan.to_markdown,
        "latex": plan.to_latex,
        "html": plan._repr_html_,
    }
    return forms[form]()
