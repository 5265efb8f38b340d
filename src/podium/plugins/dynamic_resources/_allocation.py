"""Writes found devices as the allocation of a claim."""

from __future__ import annotations

from uuid import NAMESPACE_OID, uuid5

from podium.model import NodeSelector, NodeSelectorTerm, SelectorRequirement
from podium.model.devices import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult
from podium.plugins.dynamic_resources._device_search import AllocationError, Taken

NODE_NAME_FIELD = "metadata.name"


def allocation_of(taken: list[Taken], node_name: str, claim_uid: str) -> AllocationResult:
    """The allocation of one claim; share ids are the same in every run."""
    results = [_result(each, f"{claim_uid}/{number}") for number, each in enumerate(taken)]
    return AllocationResult(
        devices=DeviceAllocationResult(results=results), node_selector=node_selector_of(taken, node_name)
    )


def _result(taken: Taken, share: str) -> DeviceRequestAllocationResult:
    device = taken.candidate.device
    consumed = {name: amount.text for name, amount in (taken.consumed or {}).items()}
    return DeviceRequestAllocationResult(
        request=taken.option.name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if taken.option.is_admin else None,
        tolerations=taken.option.tolerations,
        binding_conditions=device.device.binding_conditions,
        binding_failure_conditions=device.device.binding_failure_conditions,
        share_id=None if taken.consumed is None else str(uuid5(NAMESPACE_OID, share)),
        consumed_capacity=dict(consumed) or None,
    )


def node_selector_of(taken: list[Taken], node_name: str) -> NodeSelector | None:
    """The nodes that can use the devices: this node, the nodes that all selectors match, or None for all nodes."""
    fields: list[SelectorRequirement] = []
    expressions: list[SelectorRequirement] = []
    for each in taken:
        device = each.candidate.device
        if device.reach.node_name is not None or device.device.binds_to_node:
            requirement = SelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=[node_name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[requirement])])
        terms = device.reach.selector.node_selector_terms if device.reach.selector else []
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=fields, match_expressions=expressions)])


def _add_new(known: list[SelectorRequirement], more: list[SelectorRequirement]) -> None:
    """Add the requirements that are not in the list yet; the order of their values does not matter."""
    for requirement in more:
        if not any(_are_same(requirement, other) for other in known):
            known.append(requirement)


def _are_same(one: SelectorRequirement, other: SelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (other.key, other.operator, set(other.values))
