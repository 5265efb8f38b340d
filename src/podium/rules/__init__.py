"""How the current releases of kube-scheduler differ: named rules, and the feature gates behind some of them."""

from podium.rules._gates import (
    GATES,
    NEWEST,
    RELEASE_NAMES,
    VERSIONS,
    Gate,
    Stage,
    gate_remarks,
    gates_of,
    is_at_least,
    read_gates,
    release_order,
    short_name,
)
from podium.rules.table import (
    DIFFERENCES,
    NEWEST_RULES,
    Difference,
    Rules,
    differences,
    has_hint,
    rules_of,
    with_rule,
)

__all__ = [
    "DIFFERENCES",
    "GATES",
    "NEWEST",
    "NEWEST_RULES",
    "RELEASE_NAMES",
    "VERSIONS",
    "Difference",
    "Gate",
    "Rules",
    "Stage",
    "differences",
    "gate_remarks",
    "gates_of",
    "has_hint",
    "is_at_least",
    "read_gates",
    "release_order",
    "rules_of",
    "short_name",
    "with_rule",
]
