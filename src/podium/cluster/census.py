"""Counts pods per node and per topology domain, kept up to date as pods come and go.

Affinity, anti-affinity and spreading all ask "how many pods that ... share this value of that label". Each distinct
question becomes one `Tally`: adding a pod increments the tallies that count it, and no reader scans all pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

import numpy as np

from podium.cluster.columns import ChangeLog, Codes, Columns, Interned, Ints, LogReader, Mask, lowest
from podium.cluster.pods import NO_TERMS, Cohort, Term, hashed_once
from podium.model.selectors import Labels, Selector, SelectorIndex, selecting_pair

TermKind = Literal["required_affinity", "required_anti_affinity", "preferred_affinity", "preferred_anti_affinity"]
TERM_KINDS: tuple[TermKind, ...] = (
    "required_affinity",
    "required_anti_affinity",
    "preferred_affinity",
    "preferred_anti_affinity",
)

_versions = count(1)


class Scope(NamedTuple):
    """Pods with matching labels in some namespaces; None means in all namespaces."""

    namespaces: frozenset[str] | None
    selector: Selector

    def matches(self, namespace: str, labels: Labels) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


@hashed_once
@dataclass(frozen=True)
class Matching:
    """The question: how many pods are within all of these scopes?"""

    scopes: tuple[Scope, ...]
    terminating: bool = True
    """Whether pods being deleted still count."""

    def weigh(self, cohort: Cohort) -> int:
        if cohort.terminating and not self.terminating:
            return 0
        labels = dict(cohort.labels)
        return int(all(scope.matches(cohort.namespace, labels) for scope in self.scopes))


@hashed_once
@dataclass(frozen=True)
class Owning:
    """The question: how many times do pods carry this affinity term themselves?"""

    kind: TermKind
    term: Term

    def weigh(self, cohort: Cohort) -> int:
        terms: tuple[Term, ...] = getattr(cohort.terms, self.kind)
        return terms.count(self.term)


Question = Matching | Owning


class RowMask:
    """A boolean per node that depends on its labels and taints only, brought up to date when it is read."""

    __slots__ = ("_compute", "_mask", "_reader", "version")

    def __init__(self, compute: Callable[[], Mask], logs: tuple[ChangeLog, ...]) -> None:
        self._compute, self._reader = compute, LogReader(logs)
        self._reader.catch_up()
        self._mask = compute()
        self.version = 0
        """Increases with every change, so that data derived from the mask knows when to start over."""

    def read(self) -> Mask:
        if self._reader.is_behind:
            self._reader.catch_up()
            self._mask = self._compute()
            self.version += 1
        return self._mask


class DomainTally:
    """A tally summed over the nodes that share a label's value, by the code of the value."""

    __slots__ = (
        "_column",
        "_columns",
        "_fewest",
        "_labels_log",
        "_mask",
        "_occupied",
        "_seen",
        "_tally",
        "counts",
        "domains",
        "key",
        "nodes",
        "occupied",
    )

    STALE = (-1, -1, -1)

    def __init__(self, tally: Tally, columns: Columns, key: str, mask: RowMask | None, labels_log: ChangeLog) -> None:
        self._tally, self._columns, self._mask, self._labels_log = tally, columns, mask, labels_log
        self.key, self._column = key, columns.label(key)
        self._seen = self.STALE
        self.counts: Ints = np.zeros(0, dtype=np.int64)
        """Pods per domain, plus a zero at the end (index -1) for nodes that lack the label."""
        self.nodes: Ints = self.counts
        """Nodes per domain, plus a zero at the end; a domain without nodes does not exist."""
        self.domains = 0
        """How many domains there are."""
        self._fewest: int | None = None
        self.occupied = 0
        """How many domains have pods."""
        self._occupied: Mask | None = None

    def _state(self) -> tuple[int, int, int]:
        """The state of the nodes that the sums were made from: label changes, mask version, distinct values."""
        version = -1 if self._mask is None else self._mask.version
        return self._labels_log.head, version, len(self._column.values.values)

    def _is_stale(self) -> bool:
        """Whether the nodes changed since the sums were made."""
        labels, version, values = self._seen
        if labels != self._labels_log.head or values != len(self._column.values.values):
            return True
        return self._mask is not None and version != self._mask.version

    def read(self) -> DomainTally:
        """Bring the sums up to date with the nodes and return self; changes of pods update them immediately."""
        mask = None if self._mask is None else self._mask.read()
        if self._is_stale():
            self._seen = state = self._state()
            codes = self._codes()
            chosen = codes >= 0 if mask is None else (codes >= 0) & mask
            domains = codes[chosen]
            self.nodes = np.bincount(domains, minlength=state[2] + 1)
            self.domains = int(np.count_nonzero(self.nodes))
            self.counts = np.zeros(state[2] + 1, dtype=np.int64)
            np.add.at(self.counts, domains, self._tally.per_row()[chosen])
            self.occupied, self._occupied, self._fewest = int(np.count_nonzero(self.counts)), None, None
        return self

    @property
    def fewest(self) -> int:
        """The number of pods in the domain with the fewest; there must be a domain."""
        if self._fewest is None:
            are_all = self.domains == len(self.nodes) - 1
            self._fewest = lowest(self.counts[:-1] if are_all else self.counts[self.nodes > 0])
        return self._fewest

    def occupied_rows(self) -> Mask:
        """Whether each row is in a domain that has pods, as of the last `read`."""
        if self._occupied is None:
            self._occupied = (self.counts > 0)[self._codes()]
        return self._occupied

    def is_occupied(self, row: int) -> bool:
        """Whether a row is in a domain that has pods, as of the last `read`."""
        return self.counts.item(self._column.codes.item(row)) > 0

    def _codes(self) -> Codes:
        return self._column.codes[: self._columns.size]

    def change(self, row: int, amount: int) -> None:
        """Count `amount` more pods on a row. Does nothing if nodes changed: the next read starts over then."""
        mask = None if self._mask is None else self._mask.read()
        if self._is_stale():
            self._seen = self.STALE
            return
        code = self._column.codes.item(row)
        if code >= 0 and (mask is None or mask[row]):
            before = self.counts.item(code)
            self.counts[code] = before + amount
            self._fewest = None
            if (before > 0) != (before + amount > 0):
                self._occupy(row, code, before + amount > 0)

    def _occupy(self, row: int, code: int, is_occupied: bool) -> None:
        """Note that a domain got its first pod, or lost its last one."""
        self.occupied += 1 if is_occupied else -1
        if self._occupied is not None:
            alone = self.nodes.item(code) == 1 and self._mask is None
            self._occupied[row if alone else self._codes() == code] = is_occupied


class Tally:
    """The answer to one question: pods per row."""

    __slots__ = ("_columns", "_domains", "_labels_log", "_rows", "question")

    def __init__(self, question: Question, columns: Columns, labels_log: ChangeLog) -> None:
        self.question = question
        self._rows: Ints = np.zeros(columns.capacity, dtype=np.int64)
        self._columns, self._labels_log = columns, labels_log
        self._domains: dict[tuple[str, RowMask | None], DomainTally] = {}

    def by_domain(self, key: str, mask: RowMask | None = None) -> DomainTally:
        """The tally per value of a label, over the nodes of the mask."""
        domain = self._domains.get((key, mask))
        if domain is None:
            domain = DomainTally(self, self._columns, key, mask, self._labels_log)
            self._domains[key, mask] = domain
        return domain.read()

    def per_row(self) -> Ints:
        """Pods per row, one entry for each row of the cluster."""
        self._grow()
        return self._rows[: self._columns.size]

    def _grow(self) -> None:
        missing = self._columns.capacity - len(self._rows)
        if missing:
            self._rows = np.concatenate([self._rows, np.zeros(missing, dtype=np.int64)])

    def change(self, row: int, amount: int) -> None:
        """Count `amount` more pods on a row."""
        if row >= len(self._rows):
            self._grow()
        self._rows[row] += amount
        for domain in self._domains.values():
            domain.change(row, amount)


class Census:
    """The pods of every cohort by row, and all tallies asked for so far."""

    MOST_TALLIES = 2048

    def __init__(self, columns: Columns, labels_log: ChangeLog, cohorts: Interned[Cohort] | None = None) -> None:
        self._columns, self._labels_log = columns, labels_log
        self.cohorts: Interned[Cohort] = Interned() if cohorts is None else cohorts
        self._rows: list[dict[int, int]] = []
        self._watchers: list[list[tuple[Tally, int]]] = []
        self._terms: list[list[tuple[TermKind, Term]]] = []
        self._cohorts_by_label: dict[tuple[str, str], list[int]] = {}
        self._tallies: dict[Question, Tally] = {}
        self._tally_index: SelectorIndex[Question] = SelectorIndex()
        self.terms: dict[TermKind, LiveTerms] = {kind: LiveTerms() for kind in TERM_KINDS}
        self.with_terms = 0
        """How many pods have affinity terms of any kind."""

    def add(self, cohort_code: int, row: int, amount: int) -> None:
        """Count `amount` more (or, if negative, fewer) pods of a cohort on a row."""
        if cohort_code >= len(self._rows):
            self.admit(cohort_code)
        rows = self._rows[cohort_code]
        here = rows.get(row, 0) + amount
        if here:
            rows[row] = here
        else:
            del rows[row]
        for tally, weight in self._watchers[cohort_code]:
            tally.change(row, amount * weight)
        terms = self._terms[cohort_code]
        if terms:
            self.with_terms += amount
            for kind, term in terms:
                self.terms[kind].change(term, amount)

    def admit(self, cohort_code: int) -> None:
        """Prepare to count the pods of a cohort."""
        while cohort_code >= len(self._rows):
            self._follow(len(self._rows))

    def tally(self, question: Question) -> Tally:
        """The tally of a question, counted from scratch on first use."""
        tally = self._tallies.get(question)
        if tally is None:
            if len(self._tallies) >= self.MOST_TALLIES:
                self._forget_tallies()
            tally = self._tallies[question] = Tally(question, self._columns, self._labels_log)
            if isinstance(question, Matching):
                self._tally_index.add(question.scopes[0].selector, question)
            for code in self._candidates(question):
                weight = question.weigh(self.cohorts.values[code])
                if weight:
                    self._watchers[code].append((tally, weight))
                    for row, amount in self._rows[code].items():
                        tally.change(row, amount * weight)
        return tally

    def _candidates(self, question: Question) -> Iterator[int] | range:
        """The codes of the cohorts that a question may count."""
        if isinstance(question, Matching):
            pair = selecting_pair(question.scopes[0].selector)
            if pair is not None:
                return iter(self._cohorts_by_label.get(pair, ()))
        return range(len(self._rows))

    def _follow(self, code: int) -> None:
        """Start to count a cohort that is new here."""
        cohort = self.cohorts.values[code]
        self._rows.append({})
        watchers: list[tuple[Tally, int]] = []
        self._watchers.append(watchers)
        terms: list[tuple[TermKind, Term]] = []
        if cohort.terms is not NO_TERMS:
            terms = [(kind, term) for kind in TERM_KINDS for term in getattr(cohort.terms, kind)]
        self._terms.append(terms)
        questions: list[Question] = list(self._tally_index.candidates(dict(cohort.labels)))
        questions += (Owning(kind, term) for kind, term in dict.fromkeys(terms))
        for question in questions:
            tally = self._tallies.get(question)
            weight = question.weigh(cohort) if tally is not None else 0
            if tally is not None and weight:
                watchers.append((tally, weight))
        for pair in cohort.labels:
            self._cohorts_by_label.setdefault(pair, []).append(code)

    def _forget_tallies(self) -> None:
        """Drop all tallies: those that are still needed are counted again."""
        self._tallies.clear()
        self._tally_index = SelectorIndex()
        for watchers in self._watchers:
            watchers.clear()

    def copy(self, columns: Columns, labels_log: ChangeLog) -> Census:
        """The same pods for a fork of the cluster; its tallies are counted on first use."""
        twin = Census(columns, labels_log, self.cohorts)
        twin._rows = [rows.copy() for rows in self._rows]
        twin._watchers = [[] for _ in self._rows]
        twin._terms = self._terms.copy()
        twin._cohorts_by_label = {pair: codes.copy() for pair, codes in self._cohorts_by_label.items()}
        twin.terms = {kind: terms.copy() for kind, terms in self.terms.items()}
        twin.with_terms = self.with_terms
        return twin


class LiveTerms:
    """The distinct affinity terms of one kind that pods in the cluster carry."""

    __slots__ = ("_index", "counts", "version")

    def __init__(self) -> None:
        self.counts: dict[Term, int] = {}
        """How many times pods carry each term."""
        self._index: SelectorIndex[Term] = SelectorIndex()
        self.version = 0
        """Changes whenever a term comes or goes; two different sets of terms never have the same number."""

    def change(self, term: Term, amount: int) -> None:
        before = self.counts.get(term, 0)
        self.counts[term] = before + amount
        if not before:
            self._index.add(term.selector, term)
            self.version = next(_versions)
        elif not before + amount:
            del self.counts[term]
            self._index.discard(term.selector, term)
            self.version = next(_versions)

    def matching(self, namespace: str, labels: Labels, namespace_labels: Labels) -> list[Term]:
        """The terms that match a pod with these labels in this namespace."""
        return [term for term in self._index.candidates(labels) if term.matches(namespace, labels, namespace_labels)]

    def copy(self) -> LiveTerms:
        twin = LiveTerms()
        for term, amount in self.counts.items():
            twin.change(term, amount)
        return twin
