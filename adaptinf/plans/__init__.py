"""Plans of trials with looks: one object simulates a trial, decides at its looks, and analyses its log."""

from adaptinf.plans.looks import Look
from adaptinf.plans.plan import Plan
from adaptinf.plans.plan_characteristics import PlanCharacteristics
from adaptinf.plans.planning.committee import CommitteeReport
from adaptinf.plans.planning.plan_calibration import Calibration, calibrate
from adaptinf.plans.planning.protocol import Protocol
from adaptinf.plans.planning.sizes import PowerCurve
from adaptinf.plans.stopped_results import StoppedResults

__all__ = [
    "Calibration",
    "CommitteeReport",
    "Look",
    "Plan",
    "PlanCharacteristics",
    "PowerCurve",
    "Protocol",
    "StoppedResults",
    "calibrate",
]
