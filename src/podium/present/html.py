"""The building blocks of HTML (elements, tables, usage bars, the page with its stylesheet), and decisions and
simulations as HTML tables and data frames for notebooks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from itertools import starmap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from podium.answers.simulation import Usage
from podium.cluster import Cluster
from podium.engine.decision import Scored, ranking, scored
from podium.errors import InputError
from podium.framework.obstacle import NO_OBSTACLES, Obstacles
from podium.model.resources import CPU, MEMORY
from podium.present.explanation import NAMED, TOP, rejections, summarized, words
from podium.present.text import about_domain, amount, share, without_domain
from podium.wording import counted, listed

if TYPE_CHECKING:
    import polars

    from podium.answers.simulation import Placement, Simulation
    from podium.engine.decision import Decision


# -- building blocks ---------------------------------------------------------------------------------------------------


VOID = frozenset({"br", "meta"})
TEXT_TAGS = frozenset({"li", "p", "td"})
"""Elements that contain sentences and lists of names."""
LONGEST_NAME = 40
_HYPHENATED = re.compile(rf"(?<!\S)(?=\S{{1,{LONGEST_NAME}}}(?!\S))(\S*-\S*)")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def markup(content: object) -> Markup:
    """Content as HTML: markup as it is, anything else escaped, with shortened node names."""
    return content if isinstance(content, Markup) else Markup(escape(without_domain(str(content))))


def prose(content: object) -> Markup:
    """Content as HTML in which short names do not break at their hyphens, as browsers would do."""
    if isinstance(content, Markup) or " " not in str(content):
        return markup(content)
    parts = _HYPHENATED.split(without_domain(str(content)))
    return together(element("span", part, class_="name") if place % 2 else part for place, part in enumerate(parts))


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """An element; attributes that are None or empty are left out, and `class_` means `class`."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value not in (None, "")
    )
    inner = "".join(map(prose if tag in TEXT_TAGS else markup, content))
    return Markup(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{inner}</{tag}>")


def together(parts: Iterable[object]) -> Markup:
    """Concatenate pieces."""
    return Markup("".join(map(markup, parts)))


class Cell(NamedTuple):
    """A cell of a table with its own style."""

    content: object
    style: str = ""
    class_: str = ""
    title: str = ""


class Heading(NamedTuple):
    """The heading of a column; numbers are right-aligned."""

    title: str
    right: bool = False
    explained: str = ""
    """Shown as a tooltip."""


def table(headings: Sequence[Heading | str], rows: Iterable[Sequence[object]], class_: str = "") -> Markup:
    """A table with a row of headings; a cell may be a `Cell`.

    A table with text in columns other than the first is too wide for a phone, where its cells are stacked.
    """
    columns = [heading if isinstance(heading, Heading) else Heading(heading) for heading in headings]
    stacks = not class_ and len(columns) > 2 and not all(column.right for column in columns[1:])
    head = [
        element("th", column.title, scope="col", class_="right" if column.right else "", title=column.explained)
        for column in columns
    ]
    # The first cell names the thing that the others describe.
    labels = [column.title if stacks and (column.right or column is not columns[0]) else "" for column in columns]
    body = [element("tr", *starmap(_cell, zip(row, columns, labels, strict=True))) for row in rows]
    class_ = "stack" if stacks else class_
    return element("table", element("thead", element("tr", *head)), element("tbody", *body), class_=class_)


def _is_name(cell: Cell) -> bool:
    """Whether the content is one short word, which should not break at its hyphens."""
    text = without_domain(str(cell.content))
    return not isinstance(cell.content, Markup) and " " not in text and len(text) <= LONGEST_NAME


def _cell(content: object, column: Heading, label: str) -> Markup:
    cell = content if isinstance(content, Cell) else Cell(content)
    classes = " ".join(filter(None, ("right" if column.right else "", "name" if _is_name(cell) else "", cell.class_)))
    return element("td", cell.content, class_=classes, style=cell.style, title=cell.title, data_of=label)


STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --dim: #5c6773; --line: #d8dee6; --paper: #fff; --panel: #f5f7fa;
  --track: #e6eaf0; --kept: #7b9cc9; --less: #c3cad4;
  --blue: #2563af; --green: #1a7f4b; --red: #b3261e; --amber: #b26a00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9f0; --dim: #a3afbd; --line: #364152; --paper: #12181f; --panel: #1b232d;
    --track: #2b3644; --kept: #5b7fb5; --less: #55606e;
    --blue: #6aa5ee; --green: #55c98a; --red: #ff8f85; --amber: #f0b35a; }
}
* { box-sizing: border-box; }
html { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
body { margin: 0; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main, footer { max-width: 1180px; margin: 0 auto; padding: 0 28px; }
h1 { font-size: 26px; line-height: 1.25; margin: 32px 0 12px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 10px; padding-bottom: 5px; border-bottom: 2px solid var(--line); }
p { margin: 0 0 8px; max-width: 78ch; overflow-wrap: anywhere; }
.lead { font-size: 17px; font-weight: 600; padding: 10px 14px; border-left: 5px solid var(--blue);
  background: var(--panel); max-width: none; }
.lead.good { border-color: var(--green); }
.lead.bad { border-color: var(--red); }
.note { color: var(--dim); font-size: 13px; margin-top: 8px; }
.wide, section { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: 13.5px; min-width: 40%; }
th, td { padding: 5px 12px; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
th { font-weight: 600; color: var(--dim); white-space: nowrap; background: var(--panel); vertical-align: bottom; }
.right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.chosen { font-weight: 700; color: var(--green); }
.bad-cell { color: var(--red); font-weight: 600; }
.dim { color: var(--dim); }
.name { white-space: nowrap; }
.heat th { white-space: normal; min-width: 84px; font-size: 12px; hyphens: auto; }
.heat td { border: 1px solid var(--paper); padding: 3px 10px; }
.heat td:first-child { white-space: nowrap; }
.bar { display: inline-block; position: relative; width: 190px; height: 13px; background: var(--track);
  border-radius: 2px;
  overflow: hidden; vertical-align: -2px; margin-right: 8px; }
.bar span { position: absolute; top: 0; bottom: 0; }
.bar .kept { background: var(--kept); }
.bar .more { background: var(--blue); }
.bar .less { background: repeating-linear-gradient(45deg, var(--less) 0 3px, var(--track) 3px 6px); }
.bars td { white-space: nowrap; padding: 3px 12px; font-variant-numeric: tabular-nums; }
.key .bar { width: 22px; margin-left: 14px; margin-right: 5px; }
pre { background: var(--panel); padding: 12px 16px; font-size: 13px; overflow-x: auto; white-space: pre-wrap; }
ol { margin: 0; padding-left: 26px; } li { margin: 4px 0; max-width: 90ch; }
footer { color: var(--dim); font-size: 12px; padding-top: 26px; padding-bottom: 30px; }
@media (max-width: 700px) {
  body { font-size: 14px; } main, footer { padding: 0 12px; } h1 { font-size: 20px; margin-top: 18px; }
  th, td { padding: 4px 7px; } .heat th { min-width: 0; }
  .name:where(td:not(.right)) { white-space: normal; min-width: 5em; }
  span.name { display: inline-block; max-width: 100%; white-space: normal; }
  .stack, .stack tbody, .stack tr, .stack td { display: block; } .stack thead, .stack td:empty { display: none; }
  .stack tr { padding: 6px 0; border-bottom: 1px solid var(--line); }
  .stack td { border: 0; padding: 1px 7px; text-align: left; } .stack td:first-child { font-weight: 600; }
  .stack td[data-of]::before { content: attr(data-of) ": "; color: var(--dim); font-weight: 400; }
}
@media print {
  :root { color-scheme: light; }
  @page { margin: 14mm; size: A4 landscape; }
  body { font-size: 10.5pt; } main, footer { max-width: none; padding: 0; }
  h1 { margin-top: 0; font-size: 18pt; } h2 { break-after: avoid; font-size: 13pt; margin-top: 18pt; }
  .wide { overflow: visible; } table { font-size: 8.5pt; } th, td { padding: 3px 6px; }
  thead { display: table-header-group; } tr { break-inside: avoid; } .bar { width: 120px; }
  .heat th { min-width: 0; font-size: 7pt; } .heat td { padding: 2px 5px; }
}
"""


def page(title: str, words: Sequence[str], *sections: Markup | None, good: bool | None = None) -> str:
    """A whole file; `good` says whether the first sentence is good or bad news."""
    tone = "" if good is None else "good" if good else "bad"
    paragraphs = [element("p", text, class_=f"lead {tone}" if not place else "") for place, text in enumerate(words)]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # A report needs no other resource.
        element("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    main = element("main", element("h1", title), *paragraphs, together(filter(None, sections)))
    about = "Written by Podium, which decides as kube-scheduler does."
    footer = element("footer", ". ".join(filter(None, (about_domain(), about))))
    return f"<!doctype html>\n{element('html', head, element('body', main, footer), lang='en')}\n"


def section(title: str, *content: object, note: str = "") -> Markup:
    """A section of a report with a heading, and a remark below it."""
    remark = [element("p", note, class_="note")] if note else []
    return element("section", element("h2", title), *content, *remark)


def scrolling(content: Markup) -> Markup:
    """Wide content in a box that scrolls horizontally."""
    return element("div", content, class_="wide")


SHOWN = (CPU, MEMORY)


def usages(before: Cluster | None, after: Cluster) -> dict[str, Usage]:
    """Cpu and memory of each node, with those of another cluster as before; the same if there is none."""
    then, now = _amounts(before or after, "requested"), _amounts(after, "requested")
    offered = _amounts(after, "allocatable")
    return {name: Usage(offered[name], then.get(name, {}), now[name]) for name in now}


def bar_section(title: str, nodes: Mapping[str, Usage], resources: Sequence[str] = SHOWN) -> Markup:
    """A table of bars, one row per node by name; added and removed amounts are marked if nodes changed."""
    rows = [(name, *(bar(usage, resource) for resource in resources)) for name, usage in sorted(nodes.items())]
    changed = any(usage.before != usage.after for usage in nodes.values())
    content = scrolling(table(["Node", *(resource.rpartition("/")[2] for resource in resources)], rows, class_="bars"))
    return section(title, *([_key()] if changed else []), content)


def bar(usage: Usage, resource: str) -> Markup:
    """How full a node is: what stays, what is added, what is removed; empty if it offers none of the resource."""
    of = usage.allocatable.get(resource, 0)
    before, after = usage.before.get(resource, 0), usage.after.get(resource, 0)
    if not of:
        return element("span", "-", class_="dim")
    parts = [
        _part("kept", 0, min(before, after), of),
        _part("more", before, after, of),
        _part("less", after, before, of),
    ]
    text = share(after, of) if before == after else f"{share(before, of)} → {share(after, of)}"
    about = f"{amount(resource, after)} of {amount(resource, of)}"
    return element("span", element("span", *filter(None, parts), class_="bar", title=about), text)


def _part(kind: str, start: int, end: int, of: int) -> Markup | None:
    if end <= start:
        return None
    left, right = (min(100 * place / of, 100.0) for place in (start, end))
    return element("span", class_=kind, style=f"left: {left:.1f}%; width: {right - left:.1f}%")


def _key() -> Markup:
    whole = "left: 0; width: 100%"
    words = {"kept": "as before", "more": "more than before", "less": "no longer"}
    marks = (
        (element("span", element("span", class_=kind, style=whole), class_="bar"), text) for kind, text in words.items()
    )
    return element("p", *(part for mark in marks for part in mark), class_="key note")


def _amounts(cluster: Cluster, what: Literal["allocatable", "requested"]) -> dict[str, dict[str, int]]:
    amounts = [getattr(cluster.nodes, what)(resource).tolist() for resource in SHOWN]
    return {
        str(name): dict(zip(SHOWN, numbers, strict=True))
        for name, *numbers in zip(cluster.nodes.names, *amounts, strict=True)
    }


# -- decisions and simulations -----------------------------------------------------------------------------------------


TEXT, TEXTS, NUMBER = "text", "texts", "number"


def decision_frame(decision: Decision) -> polars.DataFrame:
    """One row per node, the best first, then the rejected nodes; one weighted score per plugin."""
    plugins = scored(decision)
    best = dict.fromkeys(decision.ties, "tied") | {decision.node: "chosen"}
    rows: list[tuple[Any, ...]] = [
        (
            node,
            best.get(node, "feasible"),
            None,
            None,
            decision.totals.get(node),
            *(one.weighted[node] for one in plugins),
        )
        for node in ranking(decision)
    ]
    rows += [
        (node, "rejected", status.plugin, list(status.reasons), None, *[None] * len(plugins))
        for node, status in decision.rejected.items()
    ]
    text = {"node": TEXT, "status": TEXT, "plugin": TEXT, "reasons": TEXTS}
    return _frame(rows, {**text, "total": NUMBER, **{one.plugin: NUMBER for one in plugins}})


def simulation_frame(simulation: Simulation) -> polars.DataFrame:
    """One row per pod in the order of deciding; for a pod without a node, `message` says why."""
    rows = [
        (each.pod.namespace, each.pod.name, each.workload, each.pod.priority, each.node, each.message or None)
        for each in simulation.placements
    ]
    about = {"namespace": TEXT, "pod": TEXT, "workload": TEXT, "priority": NUMBER}
    return _frame(rows, {**about, "node": TEXT, "message": TEXT})


def _frame(rows: Sequence[tuple[Any, ...]], columns: Mapping[str, str]) -> polars.DataFrame:
    """Rows as a frame, each column of the named type."""
    try:
        import polars
    except ImportError:
        raise InputError("data frames need polars: pip install 'podium[frames]'") from None
    types: dict[str, Any] = {TEXT: polars.String, TEXTS: polars.List(polars.String), NUMBER: polars.Int64}
    return polars.DataFrame(rows, schema={name: types[kind] for name, kind in columns.items()}, orient="row")


SHADE = "37, 99, 175"
"""Red, green and blue of the shade."""
DARKEST = 0.95
LIGHT_TEXT = 0.8
"""From this depth of shade on, white text reads better than black."""


def heat_map(decision: Decision, nodes: Sequence[str] | None = None) -> Markup:
    """Weighted scores per node and plugin, best node first: of all feasible nodes, or of `nodes`.

    Shades are per plugin: the lowest score of all nodes is white, the highest is dark. A plugin that gave every node 0
    has no column.
    """
    plugins = [(one, Shades(one.weighted.values())) for one in scored(decision) if any(one.weighted.values())]
    headings = [Heading("Node"), Heading("Total", right=True), *(_heading(one) for one, _ in plugins)]
    totals = Shades(decision.totals.values())
    rows = []
    for node in ranking(decision) if nodes is None else nodes:
        name = Cell(node, class_="chosen" if node == decision.node else "", title=_about(node, decision))
        total = Cell(f"{decision.totals[node]:,}", totals.style(decision.totals[node]))
        scores = [
            Cell(f"{one.weighted[node]:,}", shades.style(one.weighted[node]), title=_parts(one, node))
            for one, shades in plugins
        ]
        rows.append([name, total, *scores])
    return table(headings, rows, class_="heat")


def rejection_table(decision: Decision, most: int | None = None, obstacles: Obstacles = NO_OBSTACLES) -> Markup:
    """The rejected nodes by plugin and reasons, and the obstacles; at most `most` nodes are named."""
    rows = []
    for group in rejections(decision):
        nodes = listed(group.nodes, len(group.nodes) if most is None else most)
        found = [". ".join(summarized(group.nodes, obstacles))] if obstacles else []
        rows.append((f"{len(group.nodes):,}", group.why, *found, nodes))
    return table([Heading("Rejected", right=True), "Because", *(["In the way"] if obstacles else []), "Nodes"], rows)


class Shades:
    """The shade of a cell, by the position of its number between the lowest and the highest."""

    def __init__(self, numbers: Collection[int]) -> None:
        self._low, self._high = min(numbers, default=0), max(numbers, default=0)

    def style(self, number: int) -> str:
        """The style of a cell; empty if all numbers are equal."""
        if self._low == self._high:
            return ""
        depth = (number - self._low) / (self._high - self._low)
        light = "; color: #fff" if depth > LIGHT_TEXT else ""
        return f"background: rgba({SHADE}, {depth * DARKEST:.2f}){light}"


def _heading(one: Scored) -> Heading:
    weight = "" if one.weight is None else f", weight {one.weight}"
    return Heading(one.title or one.plugin, right=True, explained=f"{one.plugin}{weight}")


def _about(node: str, decision: Decision) -> str:
    return "chosen" if node == decision.node else "tied with the chosen one" if node in decision.ties else ""


def _parts(one: Scored, node: str) -> str:
    if one.raw is None or one.normalized is None:
        return ""
    return f"raw {one.raw[node]}, normalised {one.normalized[node]}, times {one.weight}"


def decision_html(decision: Decision) -> str:
    """The decision in words, the scores of the ten best nodes, and the rejections by reason."""
    parts = [element("p", " ".join(words(decision)))]
    if scored(decision):
        order = ranking(decision)
        parts.append(heat_map(decision, order[:TOP]))
        parts += [element("p", f"and {counted(len(order) - TOP, 'more node')}")] if len(order) > TOP else []
    if decision.rejected:
        parts.append(rejection_table(decision, NAMED))
    return element("div", *parts)


def simulation_html(simulation: Simulation) -> str:
    """How many pods fit, where the pods of each workload go, and why others stay pending."""
    pods, pending = counted(len(simulation.placements), "pending pod"), len(simulation.pending)
    parts = [element("p", f"{pods}: {len(simulation.placed):,} placed, {pending:,} still pending.")]
    if simulation.placements:
        parts.append(workload_table(simulation, NAMED))
    if simulation.pending:
        parts.append(pending_table(simulation, NAMED))
    return element("div", *parts)


def workload_table(simulation: Simulation, most: int | None = None) -> Markup:
    """Where the pods of each workload go; at most `most` nodes are named."""
    groups: dict[tuple[str, str], list[Placement]] = {}
    for each in simulation.placements:
        groups.setdefault((each.pod.namespace, each.workload), []).append(each)
    rows = []
    for (namespace, workload), placements in groups.items():
        nodes = Counter(each.node for each in placements if each.node is not None).most_common()
        on = [node if count == 1 else f"{node} x{count:,}" for node, count in nodes]
        named = listed(on, len(on) if most is None else most) or "-"
        rows.append((namespace, workload, f"{len(placements):,}", f"{sum(count for _, count in nodes):,}", named))
    return table(["Namespace", "Workload", Heading("Pods", right=True), Heading("Placed", right=True), "On"], rows)


def pending_table(simulation: Simulation, most: int | None = None) -> Markup:
    """Why pods stay pending; at most `most` pods with the same reason are named."""
    groups: dict[str, list[str]] = {}
    for each in simulation.pending:
        groups.setdefault(each.message, []).append(each.pod.key)
    rows = [(listed(keys, len(keys) if most is None else most), message) for message, keys in groups.items()]
    return table(["Stay pending", "Because"], rows)
