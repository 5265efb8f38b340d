"""Answers questions with the functions and documents of the command line, each within limits of time and memory."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import singledispatch
from time import monotonic
from typing import Any, NamedTuple

from podium import answers
from podium.answers.applied_scenario import AppliedScenario, configured, what_if
from podium.answers.explanation import explain_pod
from podium.answers.fix_steps import fix_of
from podium.answers.scenario import documents_of
from podium.answers.score_settings import NO_SETTINGS, with_settings
from podium.answers.simulation import simulate
from podium.answers.troubles import troubles
from podium.engine import Scheduler
from podium.engine.release import AnyRelease, Release, release_of
from podium.engine.scheduler import SchedulerOptions
from podium.errors import InputError, PodiumError
from podium.lookup import added_objects, find_pod, with_priority_and_profile
from podium.manifests import load
from podium.model import Node, Object, Pod
from podium.present import capacity as capacity_report
from podium.present import comparison as comparison_report
from podium.present import disruption as disruption_report
from podium.present import explanation as explanation_report
from podium.present import simulation as simulation_report
from podium.present import troubles as troubles_report
from podium.present.nodes import node_columns
from podium.present.scenario import fixes_document, what_if_document
from podium.web import _questions as questions
from podium.web._views import timeline_document
from podium.web.subject import Subject, in_scenario, posted_configuration
from podium.workloads.first_pods import first_pods, named_after

Document = Mapping[str, Any]


class Answered(NamedTuple):
    """An answer as data, and as an HTML report if there is one."""

    document: Document
    html: Callable[[], str] | None = None


@singledispatch
def answer(question: object, subject: Subject) -> Answered:
    """Answer a question about a cluster."""
    raise TypeError(question)


def _options(
    question: questions.Explain | questions.Simulate | questions.WhyNot | questions.Capacity, subject: Subject
) -> dict[str, Any]:
    """The scheduler options that a question asks for."""
    return {**subject.options, "tie_break": question.tie_break, "seed": question.seed}


@answer.register
def _explain(question: questions.Explain, subject: Subject) -> Answered:
    from podium.present.html_reports import explanation_page

    pod = find_pod(subject.objects, question.pod, None).pod
    options = _options(question, subject)
    if question.settings is not None:
        document = with_settings(
            subject.document, question.settings, subject.registry, subject.release, question.profile
        )
        options["config"] = configured(document, subject.release, subject.registry, "the other weights")
    with closing(Scheduler(subject.cluster, **options, assume_volumes=question.assume_volumes)) as scheduler:
        explained = explain_pod(scheduler, pod, question.profile, preempt=question.preempt)
    return Answered(explanation_report.to_document(explained), lambda: explanation_page(explained))


@answer.register
def _simulate(question: questions.Simulate, subject: Subject) -> Answered:
    from podium.present.html_reports import simulation_page

    options = {**_options(question, subject), "assume_volumes": question.assume_volumes}
    found = simulate(subject.cluster, **options, preempt=question.preempt)
    return Answered(simulation_report.to_document(found), lambda: simulation_page(found))


@answer.register
def _why_not(question: questions.WhyNot, subject: Subject) -> Answered:
    from podium.present.html_reports import why_not_page, why_nowhere_page
    from podium.present.why_not import why_not_document

    pod = find_pod(subject.objects, question.pod, None).pod
    options = {**_options(question, subject), "profile": question.profile, "most": question.most}
    if question.node is None:
        nowhere = answers.why_nowhere(subject.cluster, pod, **options)
        return Answered(why_not_document(nowhere), lambda: why_nowhere_page(nowhere))
    found = answers.why_not(subject.cluster, pod, question.node, **options)
    return Answered(why_not_document(found), lambda: why_not_page(found))


@answer.register
def _fixes(question: questions.Fixes, subject: Subject) -> Answered:
    pod = find_pod(subject.objects, question.pod, None).pod
    options = SchedulerOptions(**subject.options, tie_break="first")
    found = answers.why_nowhere(subject.cluster, pod, options, profile=question.profile, most=question.most)
    config = options.set_up().config
    fixes = [fix_of(each, subject.cluster, pod, config) for each in found.suggestions]
    return Answered(fixes_document(found, fixes))


@answer.register
def _troubles(question: questions.Troubles, subject: Subject) -> Answered:
    return Answered(troubles_report.to_document(troubles(subject.cluster, SchedulerOptions(**subject.options))))


@answer.register
def _capacity(question: questions.Capacity, subject: Subject) -> Answered:
    from podium.present.html_reports import capacity_page, workload_capacity_page

    templates, new = _templates(question, subject)
    offers = [_offer(offer) for offer in question.nodes_needed]
    if templates and offers and question.at_least == 1:
        raise InputError("nodesNeeded must know for how many pods: say atLeast")
    if not templates and not offers:
        raise InputError("no pod to find the capacity for: name some in pods or podspec, or ask with nodesNeeded")
    asked = answers.CapacityQuestion(
        templates, question.mix, question.at_least, question.limit, offers, question.exclude_nodes
    )
    options = SchedulerOptions(**_options(question, subject))
    cluster = subject.cluster.fork()
    for obj in new:
        cluster.update(obj)
    if asked.counts_each:
        each = asked.count_each(cluster, options)
        return Answered(
            capacity_report.workload_document(each), lambda: workload_capacity_page(each, at_least=question.at_least)
        )
    counted, needed = asked.count(cluster, options)
    document = capacity_report.to_document(counted, needed)
    return Answered(document, lambda: capacity_page(counted, needed, at_least=question.at_least))


def _templates(question: questions.Capacity, subject: Subject) -> tuple[list[Pod], list[Object]]:
    """The pods to add more of, and the objects that come with those that are not in the cluster."""
    objects = subject.objects
    found = [named_after(find_pod(objects, name, None).pod, name.rpartition("/")[2]) for name in question.pods]
    new: list[Object] = []
    if question.podspec is not None:
        posted = load(documents_of(question.podspec, "podspec"))
        found += first_pods(posted, "podspec")
        new = added_objects(objects, posted)
    return [with_priority_and_profile(pod, objects, question.profile) for pod in found], new


def _offer(offer: questions.NodeOffer) -> answers.NodeTemplate:
    objects = load(documents_of(offer.node, "nodesNeeded"))
    nodes = objects.of(Node)
    if len(nodes) != 1:
        raise InputError(f"nodesNeeded has {len(nodes)} nodes; a template is one")
    others = tuple(item for item in objects if not isinstance(item, Node))
    return answers.NodeTemplate(nodes[0], offer.price, others)


def _settings(question: questions.Drain | questions.Fail, subject: Subject) -> answers.DisruptionSettings:
    return answers.DisruptionSettings(
        **subject.options, tie_break=question.tie_break, seed=question.seed, preempt=question.preempt
    )


@answer.register
def _drain(question: questions.Drain, subject: Subject) -> Answered:
    from podium.present.html_reports import disruption_page

    found = answers.drain(subject.cluster, list(dict.fromkeys(question.nodes)), _settings(question, subject))
    return Answered(disruption_report.to_document(found), lambda: disruption_page(found))


@answer.register
def _fail(question: questions.Fail, subject: Subject) -> Answered:
    from podium.present.html_reports import disruption_page

    cluster, worst = subject.cluster, question.of_any
    if bool(question.selectors) == bool(worst):
        raise InputError("say which nodes fail: by label in selectors, such as zone=eu-1a, or any N for the worst N")
    settings = _settings(question, subject)
    found: answers.Disruption | answers.WorstCase
    if worst:
        found = answers.worst_case(cluster, worst, settings, most=question.most)
    else:
        nodes = dict.fromkeys(name for text in question.selectors for name in answers.nodes_matching(cluster, text))
        found = answers.fail(cluster, list(nodes), settings)
    return Answered(disruption_report.to_document(found), lambda: disruption_page(found))


@answer.register
def _compare(question: questions.Compare, subject: Subject) -> Answered:
    from podium.present.html_reports import comparison_page

    before, after = _ways(question, subject)
    answers.check_ways(before, after)
    found = answers.compare(
        before,
        after,
        replay=question.replay,
        registry=subject.registry,
        tie_break=question.tie_break,
        seed=question.seed,
    )
    return Answered(comparison_report.to_document(found), lambda: comparison_page(found))


def _ways(question: questions.Compare, subject: Subject) -> tuple[answers.Way, answers.Way]:
    """The two sides that are asked for, which differ in configuration, release or settings."""
    asked = [bool(question.configs), bool(question.releases), question.settings is not None, bool(question.scenarios)]
    if sum(asked) != 1:
        raise InputError("say what differs: configs, releases, settings or scenarios; one of them")
    if question.scenarios:
        sides = [in_scenario(subject, questions.scenario_of(each)) for each in question.scenarios]
        before, after = [subject, *sides][-2:]
        return _way_of(before), _way_of(after)

    def way(config: Any, release: AnyRelease, name: str) -> answers.Way:
        return answers.Way(cluster=subject.cluster, config=config, release=release, name=name)

    today = "the default configuration" if subject.document is None else "the configuration of the input"
    if question.releases:
        releases = [release_of(name) for name in question.releases]
        first, second = [subject.release, *releases][-2:]
        return _as_release(first, subject), _as_release(second, subject)
    if question.settings is not None:
        document = with_settings(subject.document, question.settings, subject.registry, subject.release)
        config = configured(document, subject.release, subject.registry, "the other weights")
        return way(subject.config, subject.release, today), way(config, subject.release, "the other weights")
    configs = [
        configured(posted_configuration(each), subject.release, subject.registry, f"configuration {place}")
        for place, each in enumerate(question.configs, 1)
    ]
    if len(configs) == 1:
        return way(subject.config, subject.release, today), way(configs[0], subject.release, "configuration 1")
    return (
        way(configs[0], subject.release, "configuration 1"),
        way(configs[1], subject.release, "configuration 2"),
    )


def _way_of(subject: Subject) -> answers.Way:
    """A cluster in its scenario, as a side of a comparison."""
    name = subject.scenario.title
    return answers.Way(cluster=subject.cluster, config=subject.config, release=subject.release, name=name)


def _as_release(release: Release, subject: Subject) -> answers.Way:
    """The cluster decided by a release, with its own configuration if the release can read it."""
    document = subject.document if release.is_old == subject.release.is_old else None
    config = configured(document, release, subject.registry, "the configuration")
    return answers.Way(cluster=subject.cluster, config=config, release=release, name=release.name)


@answer.register
def _audit(question: questions.Audit, subject: Subject) -> Answered:
    from podium.present.html_reports import audit_page

    found = answers.audit(subject.cluster, **subject.options)
    return Answered(disruption_report.audit_document(found), lambda: audit_page(found))


@answer.register
def _configuration(question: questions.Configuration, subject: Subject) -> Answered:
    if question.settings is None and subject.document is not None:
        # The scenario's weights are in it already.
        return Answered(subject.document)
    settings = question.settings or NO_SETTINGS
    return Answered(with_settings(subject.document, settings, subject.registry, subject.release, question.profile))


@answer.register
def _timeline(question: questions.Timeline, subject: Subject) -> Answered:
    from podium.web._views import timeline_page

    document = timeline_document(question, subject)
    return Answered(document, lambda: timeline_page(document))


@answer.register
def _what_if(question: questions.WhatIf, subject: Subject) -> Answered:
    from podium.web._views import what_if_page

    today = subject if subject.before is None else subject.before
    applied = AppliedScenario(
        scenario=subject.scenario,
        objects=subject.objects,
        document=subject.document,
        options=SchedulerOptions(**subject.options),
        effects=subject.effects,
    )
    found = what_if(today.cluster, SchedulerOptions(**today.options), subject.cluster, applied)
    document = what_if_document(found, node_columns(subject.cluster, question.group, today.cluster))
    return Answered(document, lambda: what_if_page(document))


Answer = Callable[[bytes], bytes]
"""Answers a question: bytes in, bytes out."""

MIB = 1024 * 1024


class BusyError(PodiumError):
    """All processes are busy, and enough other questions wait already."""


class EndedError(PodiumError):
    """The process ended before it had an answer: it took too long, or needed too much memory."""


class AnswerWorkers:
    """Answers questions in separate processes: a number at once, each with limits of time and memory.

    `start` forks the process that all others are copies of; call it before the first thread starts.
    """

    def __init__(
        self, answer: Answer, *, at_once: int = 2, waiting: int = 16, seconds: float = 60.0, mebibytes: int = 2048
    ) -> None:
        """`waiting` is how many questions may wait; `mebibytes` is the memory that one may use in addition to the
        server's.
        """
        self._answer, self._seconds, self._mebibytes = answer, seconds, mebibytes
        self._at_once, self._most = at_once, at_once + waiting
        self._count = 0
        self._free: asyncio.Semaphore | None = None
        self._control: socket.socket | None = None
        self._pid = 0

    def start(self) -> None:
        """Fork the process that forks the others."""
        if not hasattr(os, "fork"):
            raise PodiumError("podium serve needs a system that can fork processes, such as Linux or macOS")
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            ours.close()
            _serve(theirs, self._answer, self._seconds, self._mebibytes)
        theirs.close()
        self._control = ours

    def close(self) -> None:
        """End the process that forks the others; processes with a question still answer it."""
        if self._control is not None:
            self._control.close()
            self._control = None
            os.waitpid(self._pid, 0)

    async def ask(self, question: bytes) -> bytes:
        """The answer to a question; BusyError if too many wait already, EndedError if there is none in time."""
        if self._count >= self._most:
            raise BusyError(f"busy: {self._count} questions are being answered or wait; ask again in a few seconds")
        if self._free is None:
            self._free = asyncio.Semaphore(self._at_once)
        self._count += 1
        try:
            async with self._free:
                return await self._ask(question)
        finally:
            self._count -= 1

    async def _ask(self, question: bytes) -> bytes:
        if self._control is None:
            raise PodiumError("the workers are not started")
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"q"], [theirs.fileno()])
        start = monotonic()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            writer.write(question)
            writer.write_eof()
            answer = await reader.read()
        except ConnectionError:
            answer = b""
        finally:
            writer.close()
        if not answer:
            raise EndedError(self._why_ended(monotonic() - start))
        return answer[1:]

    def _why_ended(self, seconds: float) -> str:
        if seconds >= self._seconds:
            return (
                f"no answer within {self._seconds:g} s: ask about less, or start the server with a longer --time-limit"
            )
        return "not enough memory for this question"


def _serve(control: socket.socket, answer: Answer, seconds: float, mebibytes: int) -> None:
    """Fork a process for every connection passed on, until the server is gone; never returns."""
    # Terminals send an interrupt to every process; only the server handles it, and its end ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            message, handles, _, _ = socket.recv_fds(control, 1, 1)
        except OSError:
            os._exit(0)
        if not message:
            os._exit(0)
        pid = os.fork()
        if not pid:
            control.close()
            _answer_one(socket.socket(fileno=handles[0]), answer, seconds, mebibytes)
        for handle in handles:
            os.close(handle)


def _answer_one(connection: socket.socket, answer: Answer, seconds: float, mebibytes: int) -> None:
    """Read a question, write its answer and exit; the kernel's alarm ends it if it takes too long."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        _limit_memory(mebibytes)
        question = b"".join(iter(lambda: connection.recv(MIB), b""))
        # The first byte is always sent, which distinguishes an empty answer from none.
        connection.sendall(b"a" + answer(question))
    finally:
        os._exit(0)


def _limit_memory(mebibytes: int) -> None:
    """Limit the memory that the process may use in addition; without a limit on systems that do not report its use."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (now + mebibytes * MIB,) * 2)
