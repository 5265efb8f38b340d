"""Reports as HTML: one file that needs nothing else, says what the text says, and is well formed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cli.running import node, pod, run, written
from podium.answers.simulation import Usage
from podium.present.html import Heading, bar, element, page, section, table

OPTIONS = {
    "explain": ("explain", "web"),
    "explain a pod that fits nowhere": ("explain", "big", "--preempt"),
    "simulate": ("simulate",),
    "why-not": ("why-not", "web", "full"),
    "why-not where it loses": ("why-not", "web", "busy"),
    "capacity": ("capacity", "web"),
    "capacity and nodes": ("capacity", "web", "--at-least", "40", "--nodes-needed", "four.json=2"),
    "nodes for what is pending": ("capacity", "--nodes-needed", "four.json"),
    "compare": ("compare", "--config", "packing.yaml", "--replay"),
    "drain": ("drain", "busy"),
    "fail": ("fail", "--any", "1"),
    "audit": ("audit",),
    "tune": ("tune", "--trials", "3", "--jobs", "1"),
    "tune in vain": ("tune", "--trials", "1", "--jobs", "1"),
}
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]}]
"""


class Report(HTMLParser):
    """What a browser would see: the tags, and the text without the stylesheet."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += f"{data}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    web = [pod(f"web{number or ''}", requests={"cpu": "1", "memory": "1Gi"}) for number in range(3)]
    small = pod("small", nodeName="busy", requests={"cpu": "500m"})
    running = [
        small,
        pod("busy-one", nodeName="busy", requests={"cpu": "2"}),
        pod("all", nodeName="full", requests={"cpu": "4"}),
    ]
    nodes = [node("busy"), node("full"), node("idle", labels={"topology.kubernetes.io/zone": "z"})]
    written(tmp_path / "cluster.json", *nodes, *web, *running, pod("big", requests={"cpu": "64"}))
    written(tmp_path / "four.json", node("four"))
    (tmp_path / "packing.yaml").write_text(PACKING)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", OPTIONS.values(), ids=OPTIONS)
def test_every_command_writes_a_report_besides_its_output(arguments: tuple[str, ...], folder: Path) -> None:
    plain = run(*arguments, "-f", "cluster.json")
    result = run(*arguments, "-f", "cluster.json", "--html", "report.html")

    assert (result.exit_code, result.stdout) == (plain.exit_code, plain.stdout), result.stderr
    html = (folder / "report.html").read_text()
    report = Report(html)
    assert html.startswith("<!doctype html>")
    assert {"h1", "style", "title"} <= report.tags
    first = plain.stdout.split("\n\n")[0]
    assert " ".join(first.split()) in " ".join(report.text.split())


@pytest.mark.parametrize("arguments", OPTIONS.values(), ids=OPTIONS)
def test_a_report_needs_nothing_else(arguments: tuple[str, ...], folder: Path) -> None:
    run(*arguments, "-f", "cluster.json", "--html", "report.html")

    html = (folder / "report.html").read_text()
    report = Report(html)
    assert not report.tags & {"script", "link", "img", "iframe", "object", "base"}
    assert not report.attributes & {"src", "href", "onclick", "onload"}
    assert not re.search(r"https?:|@import|url\(", html)
    assert "@media print" in html


def test_the_same_input_gives_the_same_report(folder: Path) -> None:
    for name in ("one.html", "other.html"):
        run("simulate", "-f", "cluster.json", "--html", name)

    assert (folder / "one.html").read_bytes() == (folder / "other.html").read_bytes()


CONTENTS = {
    "the heat map": (("explain", "web"), ("Scores: 2 of 3 nodes fit", "NodeResourcesFit", "idle")),
    "the rejections": (("explain", "web"), ("Rejected: 1 node", "NodeResourcesFit: Insufficient cpu")),
    "the bars": (("simulate",), ("How full the nodes get", "0% → 50%", "as before")),
    "what is pending": (("simulate",), ("Stay pending", "default/big")),
    "suggestions": (("why-not", "web", "full"), ("Any one of these sends it there", "evict default/all (priority 0)")),
    "measures": (("compare", "--config", "packing.yaml"), ("nodes in use", "Go elsewhere: 2 pods")),
    "fates": (("drain", "busy"), ("What becomes of the pods", "no controller makes it again")),
    "drift": (("audit",), ("Would go elsewhere: 2 pods", "busy-one")),
    "settings": (("tune", "--trials", "3", "--jobs", "1"), ("MostAllocated", "The configuration", "kind: KubeSched")),
}


@pytest.mark.parametrize(("arguments", "texts"), CONTENTS.values(), ids=CONTENTS)
def test_what_is_in_it(arguments: tuple[str, ...], texts: tuple[str, ...], folder: Path) -> None:
    run(*arguments, "-f", "cluster.json", "--html", "report.html")

    text = " ".join(Report((folder / "report.html").read_text()).text.split())
    for expected in texts:
        assert expected in text


def test_no_name_is_markup() -> None:
    html = page("<script>", ["a & b", "<i>"], section("<b>", "<u>"))

    assert "<script>" not in html
    assert "a &amp; b" in html
    assert Report(html).tags == {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "h1",
        "p",
        "section",
        "h2",
    } | {"footer"}


BARS = {
    "nothing offered": ((0, 0, 0), []),
    "as before": ((10, 5, 5), ["kept 0.0% 50.0%"]),
    "more": ((10, 2, 5), ["kept 0.0% 20.0%", "more 20.0% 30.0%"]),
    "less": ((10, 5, 2), ["kept 0.0% 20.0%", "less 20.0% 30.0%"]),
    "more than there is": ((10, 5, 20), ["kept 0.0% 50.0%", "more 50.0% 50.0%"]),
}


@pytest.mark.parametrize(("amounts", "parts"), BARS.values(), ids=BARS)
def test_bars(amounts: tuple[int, int, int], parts: list[str]) -> None:
    html = bar(Usage(*({"x": number} for number in amounts)), "x")

    found = re.findall(r'class="(\w+)" style="left: (\S+); width: (\S+)"', html)
    assert [" ".join(each) for each in found] == parts


BAD = {
    "no such folder": (("audit", "--html", "gone/report.html"), "gone/report.html: no such file or directory"),
    "a folder": (("audit", "--html", "."), "is a directory"),
    "with a timeline": (("simulate", "--until", "1h", "--html", "report.html"), "cannot be used with --timeline"),
}


@pytest.mark.parametrize(("arguments", "problem"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_code_2(arguments: tuple[str, ...], problem: str, folder: Path) -> None:
    result = run(*arguments, "-f", "cluster.json")

    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(folder.glob("*.html"))


def test_names_in_a_list_do_not_break_at_their_hyphens() -> None:
    names = f"gpu-1, general-a2 & {'x-' * 30}, on"
    unbroken = '<span class="name">gpu-1,</span> <span class="name">general-a2</span> &amp; '
    assert element("td", names) == f"<td>{unbroken}{'x-' * 30}, on</td>"
    assert element("td", "general-a2") == "<td>general-a2</td>"
    assert element("title", names) == f"<title>gpu-1, general-a2 &amp; {'x-' * 30}, on</title>"


def test_the_page_of_a_capacity_says_what_is_in_the_way_and_counts_one_template_once(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", node(), pod(requests={"cpu": "3"}))

    html = run("capacity", "web", "-f", cluster, "--html", "-").stdout

    assert "cpu missing (3 asked for" in html
    assert html.count(">default/web<") == 0


def test_tables_with_text_beside_the_first_column_stack_on_phones() -> None:
    right = Heading("Pods", right=True)
    stacked = table(["Workload", right, "Because"], [["web", 3, "of"]])
    assert stacked.startswith('<table class="stack">')
    assert '<td class="name">web</td><td class="right name" data-of="Pods">3</td>' in stacked
    assert '<td class="name" data-of="Because">of</td>' in stacked
    for others in (table(["Workload", right, right], [["web", 3, 4]]), table(["Pod", "Because"], [["web", "of"]])):
        assert others.startswith("<table><thead>")
        assert "data-of" not in others
