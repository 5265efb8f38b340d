"""Renders what a scenario does: each step in sentences, and what differs from the cluster before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podium.answers import WhyNowhere
from podium.answers.applied_scenario import Differences, Effect, PendingChanges, WhatIf
from podium.answers.fix_steps import Fix
from podium.answers.scenario import Cordon, Evict, Place, Scale, Uncordon
from podium.answers.simulation import Placement
from podium.present import API_VERSION
from podium.present.disruption import sentences
from podium.present.disruption import to_document as disruption_document
from podium.present.troubles import closest_words
from podium.wording import counted, listed

NAMED = 6


def effect_sentences(effect: Effect) -> list[str]:
    """What a step did."""
    nodes, names = counted(len(effect.nodes), "node"), listed(effect.nodes, NAMED)
    if effect.disruption is not None:
        return [each.alone for each in sentences(effect.disruption)]
    match effect.step, effect.pods, effect.objects:
        case Cordon(), _, _:
            return [f"{nodes} cordoned: {names}."]
        case Uncordon(), _, _:
            return [f"{nodes} uncordoned: {names}."]
        case Scale(workload=workload), (before, after), _:
            return [f"{workload} goes from {counted(before, 'pod')} to {after:,}."]
        case Place(), (placed, waiting), _:
            return [f"{counted(placed, 'pending pod')} placed, {waiting:,} still pending."]
        case Evict(pods=pods), _, _:
            return [f"{counted(len(pods), 'pod')} evicted: {listed(pods, NAMED)}."]
        case _, _, dict() as kinds:
            found = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            return [f"{counted(sum(kinds.values()), 'object')} applied: {found}."]
    return [f"{nodes} like {getattr(effect.step, 'like', '')} added: {names}."]


def effect_document(effect: Effect) -> dict[str, Any]:
    """What a step did, as plain data; for a drain or a failure with the fate of every pod and budget."""
    found = None if effect.disruption is None else disruption_document(effect.disruption)
    return {
        "do": type(effect.step).__struct_config__.tag,
        "title": effect.step.words,
        "words": effect_sentences(effect),
        "nodes": list(effect.nodes),
        "disruption": found,
    }


MOST_LISTED = 500


def differences_document(found: Differences) -> dict[str, Any]:
    """What differs, as plain data: every node, and the first 500 pods."""
    return {
        "newNodes": list(found.new_nodes),
        "goneNodes": list(found.gone_nodes),
        "changedNodes": list(found.changed_nodes),
        "movedPods": len(found.moved),
        "pods": [each.to_dict() for each in found.moved[:MOST_LISTED]],
    }


def pending_sentences(found: PendingChanges) -> list[str]:
    """How pending pods fare, compared with before: first those that wait because of the scenario."""
    told = []
    if found.new_waiting:
        verb = "fits" if len(found.new_waiting) == 1 else "fit"
        told.append(f"{counted(len(found.new_waiting), 'more pod')} {verb} nowhere.")
    if found.fits_no_longer:
        told.append(f"{counted(len(found.fits_no_longer), 'pending pod')} would have got a node before, and not now.")
    if found.fits_now:
        told.append(f"{counted(len(found.fits_now), 'pod')} that fitted nowhere before would now get a node.")
    if found.new_placed:
        told.append(f"{counted(len(found.new_placed), 'new pod')} would get a node.")
    if found.waiting_as_before:
        verb = "fits" if found.waiting_as_before == 1 else "fit"
        told.append(f"{counted(found.waiting_as_before, 'pod')} that fitted nowhere before still {verb} nowhere.")
    return told


def pending_document(found: PendingChanges) -> dict[str, Any]:
    """How pending pods fare, as plain data; at most 500 pods of each kind."""
    groups = {
        "fitsNow": found.fits_now,
        "fitsNoLonger": found.fits_no_longer,
        "newPlaced": found.new_placed,
        "newWaiting": found.new_waiting,
    }
    return {
        "harmless": found.harmless,
        "words": pending_sentences(found),
        "counts": {name: len(pods) for name, pods in groups.items()},
        "placedAsBefore": found.placed_as_before,
        "waitingAsBefore": found.waiting_as_before,
        **{name: [placement_document(each) for each in pods[:MOST_LISTED]] for name, pods in groups.items()},
    }


def placement_document(placement: Placement) -> dict[str, Any]:
    return {"pod": placement.pod.key, "node": placement.node, "message": placement.message or None}


def what_if_document(found: WhatIf, nodes: Mapping[str, Any]) -> dict[str, Any]:
    """A cluster in a scenario as plain data, of kind WhatIf; `nodes` are its nodes by columns."""
    after = found.simulation
    # Pods that fit nowhere come first: users look for them.
    placements = sorted(after.placements, key=lambda each: each.node is not None)[:MOST_LISTED]
    return {
        "apiVersion": API_VERSION,
        "kind": "WhatIf",
        "title": found.scenario.title,
        "steps": [effect_document(each) for each in found.effects],
        "harmless": found.harmless,
        "fits": after.fits,
        "placed": len(after.placed),
        "pending": len(after.pending),
        "placements": [placement_document(each) for each in placements],
        "pendingChanges": pending_document(found.pending),
        "differences": differences_document(found.differences),
        "tiles": nodes,
    }


def fixes_document(found: WhyNowhere, fixes: Sequence[Fix]) -> dict[str, Any]:
    """What would let a pod run, as plain data, of kind Fixes; each fix with its steps and weights for a scenario."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Fixes",
        "pod": found.pod,
        "closest": [{"node": each.node, "words": closest_words(each)} for each in found.closest],
        "suggestions": [
            {
                "text": fix.suggestion.text,
                "goesTo": fix.suggestion.decision.node,
                "canTry": fix.can_be_tried,
                "steps": [msgspec.to_builtins(step) for step in fix.steps],
                "settings": None if fix.settings is None else msgspec.to_builtins(fix.settings),
            }
            for fix in fixes
        ],
    }
