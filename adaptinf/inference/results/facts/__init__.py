"""What every table asks of its log and of its limits."""

from adaptinf.inference.results.facts.logs import LogFacts, StoppingFacts

__all__ = ["LogFacts", "StoppingFacts"]
