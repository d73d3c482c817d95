"""Trials on which each design is audited: neighbouring ones, and ones whose decisions are recomputed."""

from adaptinf.audit.privacy.designs import arm_audits as arm_audits
from adaptinf.audit.privacy.designs import best_arm_audits as best_arm_audits
from adaptinf.audit.privacy.designs import conse_audits as conse_audits
from adaptinf.audit.privacy.designs import linear_audits as linear_audits
from adaptinf.audit.privacy.designs import local_audits as local_audits
from adaptinf.audit.privacy.designs import mixture_audits as mixture_audits
from adaptinf.audit.privacy.designs import stopping_audits as stopping_audits
from adaptinf.audit.privacy.designs.audited_trial import (
    AuditTrial,
    NodeNoise,
    NodeUnits,
    Replayed,
    audit_trials,
)
from adaptinf.audit.privacy.designs.neighbours import Neighbours, neighbouring_trials

__all__ = [
    "AuditTrial",
    "Neighbours",
    "NodeNoise",
    "NodeUnits",
    "Replayed",
    "audit_trials",
    "neighbouring_trials",
]
