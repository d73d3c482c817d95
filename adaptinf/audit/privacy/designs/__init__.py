"""Trials on which each design is audited: neighbouring pairs, and trials whose decisions are recomputed."""

from adaptinf.audit.privacy.designs import conse_audits as conse_audits
from adaptinf.audit.privacy.designs import counter_audits as counter_audits
from adaptinf.audit.privacy.designs import epoch_audits as epoch_audits
from adaptinf.audit.privacy.designs import local_audits as local_audits
from adaptinf.audit.privacy.designs import mixture_audits as mixture_audits
from adaptinf.audit.privacy.designs import stopping_audits as stopping_audits
from adaptinf.audit.privacy.designs.audited_trial import (
    AuditTrial,
    Neighbours,
    NodeNoise,
    NodeUnits,
    Replayed,
    audit_trials,
    neighbouring_trials,
)

__all__ = [
    "AuditTrial",
    "Neighbours",
    "NodeNoise",
    "NodeUnits",
    "Replayed",
    "audit_trials",
    "neighbouring_trials",
]
