"""Options that define the estimand, and the fit or the table of methods for it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from adaptinf.cli.grammar import CommandParser
from adaptinf.errors import ParameterError

if TYPE_CHECKING:
    from adaptinf.inference.recommend import Recommendation
    from adaptinf.inference.results.fit_results import Results


def add_target_options(parser: CommandParser) -> Any:
    """Add the options for the estimand; return their group, for other arguments of a method."""
    what = parser.add_argument_group("what to estimate")
    what.add_argument("--treatment", metavar="ARM", help="treatment arm of a difference between two arms")
    what.add_argument(
        "--control",
        metavar="ARM",
        help="control arm; without --treatment, all other arms are compared with it",
    )
    what.add_argument(
        "--lift", action="store_true", help="with --control: relative lifts instead of differences"
    )
    what.add_argument(
        "--denominator", metavar="COLUMN", help="denominator of a ratio, such as orders for revenue per order"
    )
    what.add_argument("--covariate", action="append", metavar="COLUMN", help="context that predicts rewards")
    what.add_argument("--by", action="append", metavar="COLUMN", help="context that defines the groups")
    what.add_argument(
        "--winner",
        action="store_true",
        help="the arm with the highest estimate, with an interval that accounts for the selection; with "
        "--control, the best of the others against that arm",
    )
    return what


def add_method_options(what: Any) -> None:
    """The method."""
    what.add_argument(
        "--estimator",
        metavar="NAME",
        help="sample-mean, ipw, aipw or alee, for a difference of two arms also batched; with --by, "
        "difference-in-means, aipw or released. By default, the method that suits the log",
    )
    what.add_argument(
        "--weights", metavar="NAME", help="uniform, sqrt, two-point or combined: for ipw and aipw"
    )
    what.add_argument(
        "--received",
        action="store_true",
        help="with --assigned: effect of receiving the treatment, with assignment as the instrument",
    )


def add_alpha(parser: Any, said: str = "one minus the confidence level (0.05)") -> None:
    """Add the option for the level of intervals or tests."""
    parser.add_argument("--alpha", type=float, default=0.05, metavar="NUMBER", help=said)


def further_columns(arguments: argparse.Namespace, options: dict[str, Any], sums: Sequence[str]) -> None:
    """Add the columns that the question requires to the options of a file."""
    of_sums = any(name in options for name in sums)
    if options and arguments.by:
        role = "group" if of_sums else "context"
        options[role] = list(dict.fromkeys([*options.get(role, []), *arguments.by]))
    if of_sums:
        options |= _of_sums(arguments.denominator, arguments.covariate)
    elif options and arguments.denominator not in (None, *options.get("context", ())):
        options["outcomes"] = [arguments.denominator]


def _of_sums(denominator: str | None, covariates: Sequence[str] | None) -> dict[str, str]:
    """Columns of sums of a denominator and of a covariate, if requested."""
    if covariates and len(covariates) > 1:
        several = (
            "a table of sums allows only one covariate: for several, supply the rows, or sums computed by "
            "adaptinf"
        )
        raise ParameterError("--covariate", [several])
    named = {"denominator": denominator, "covariate": covariates[0] if covariates else None}
    return {role: name for role, name in named.items() if name is not None}


def argument_problems(arguments: argparse.Namespace) -> list[str]:
    """Problems with arguments that do not depend on the contents of the file."""
    from adaptinf.guarantee import PrivacyGuarantee
    from adaptinf.inference.arms.choice import CONTRAST_ESTIMATORS, ESTIMATORS
    from adaptinf.inference.arms.weighted import WEIGHTS
    from adaptinf.parameters import OneOf, alpha_problems

    problems = alpha_problems(arguments.alpha)
    if arguments.epsilon is not None:
        try:
            PrivacyGuarantee(epsilon=arguments.epsilon, unit="reward")
        except ParameterError as error:
            problems += error.problems
    known = ESTIMATORS if arguments.control is None else CONTRAST_ESTIMATORS
    if arguments.by:
        known = ("difference-in-means", "aipw", "released")
    if arguments.estimator is not None:
        problems += OneOf(*known)("estimator", arguments.estimator)
    if arguments.weights is not None:
        problems += OneOf(*WEIGHTS)("weights", arguments.weights)
    return problems


@dataclass(frozen=True)
class Asked:
    """The estimand and the method, as typed."""

    treatment: str | None = None
    control: str | None = None
    by: Sequence[str] | None = None
    lift: bool = False
    winner: bool = False
    denominator: str | None = None
    covariate: Sequence[str] | None = None
    estimator: str | None = None
    weights: str | None = None
    received: bool = False

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Asked:
        """Arguments that a command accepts."""
        given = {each.name: getattr(arguments, each.name, None) for each in fields(cls)}
        return cls(**{name: value for name, value in given.items() if value})

    @property
    def nothing(self) -> bool:
        """Whether the request is for the default: means of all arms, or the comparisons of a plan."""
        return self == Asked()

    def fit(self, log: Any) -> Results:
        """Results of the requested model."""
        from adaptinf.log.stated_plans import states_plan

        if self.nothing and states_plan(log):
            return self.methods(log).fit()
        first, second = self._arms(log)
        chosen: dict[str, Any] = {"weights": self.weights}
        if self.estimator is not None:
            chosen["estimator"] = self.estimator
        below: dict[str, Any] = {} if self.denominator is None else {"denominator": self.denominator}
        if self.covariate:
            chosen["covariate"] = self.covariate
        if self.winner:
            from adaptinf.inference.winners.winner import Winner

            return Winner(log, control=second).fit(**chosen)
        if self.by:
            from adaptinf.inference.effects.cate import CATE

            return CATE(log, by=self.by, treatment=first, control=second).fit(**chosen)

        from adaptinf.inference.arms import ArmMeans, Contrast

        if first is None and second is None:
            return ArmMeans(log, **below).fit(**chosen)
        if first is None or self.lift:
            from adaptinf.inference.contrasts import Contrasts

            others = None if first is None else [first]
            return Contrasts(log, control=second, treatments=others, **below).fit(**chosen, lift=self.lift)
        estimand = "received" if self.received else "assigned"
        return Contrast(log, treatment=first, control=second, **below).fit(**chosen, estimand=estimand)

    def methods(self, log: Any) -> Recommendation:
        """The table of methods for the same request."""
        from adaptinf.inference.recommend import recommend

        first, second = self._arms(log)
        metric: dict[str, Any] = {"denominator": self.denominator, "covariate": self.covariate}
        if self.winner:
            return recommend(log, "winner", control=second)
        if self.by:
            return recommend(log, "cate", by=self.by, treatment=first, control=second)
        if first is None and second is None:
            return recommend(log, **metric)
        if first is None or self.lift:
            others = None if first is None else [first]
            metric["lift"] = self.lift or None
            return recommend(log, "contrasts", control=second, treatments=others, **metric)
        return recommend(log, "contrast", treatment=first, control=second, **metric)

    def _arms(self, log: Any) -> tuple[Any, Any]:
        """Treatment and control as in the log; incompatible options are refused."""
        from adaptinf.parameters import refuse

        known = {str(arm): arm for arm in log.arms}
        first, second = (
            None if text is None else label(text, known) for text in (self.treatment, self.control)
        )
        refuse("arguments", self._conflicts())
        if first is not None and second is None and not self.by:
            arms = ", ".join(map(repr, log.arms))
            problem = f"give --treatment and --control; the log has {arms}"
            raise ParameterError("a difference between arms", [problem])
        return first, second

    def _conflicts(self) -> list[str]:
        """Incompatible options, with the requirements of each."""
        alone = self.by or self.received
        problems = []
        if self.received and (self.by or self.treatment is None or self.control is None):
            problems.append("--received requires --treatment and --control, without --by")
        if self.lift and not self.winner and (alone or self.control is None):
            problems.append("--lift requires --control, without --by, --received and --winner")
        for name in ("denominator", "covariate"):
            if getattr(self, name) and (alone or self.winner):
                problems.append(f"--{name} cannot be combined with --by, --winner or --received")
        if self.winner and (alone or self.lift or self.treatment is not None):
            problems.append(
                "--winner must be used alone or with --control: omit --by, --received, --lift and --treatment"
            )
        return problems


def label(text: str, known: Mapping[str, Any]) -> Any:
    """The arm denoted by a text: a known arm, or a number if all known arms are numbers; 01 is not 1."""
    kinds = set(map(type, known.values()))
    if text not in known and len(kinds) == 1 and kinds <= {int, float}:
        kind = kinds.pop()
        try:
            number = kind(text)
        except ValueError:
            return text
        return number if kind is float or str(number) == text else text
    return known.get(text, text)
