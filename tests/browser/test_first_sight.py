"""What a person sees at first sight: what is wrong, why a pod waits, what helps; and one scenario in every view."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser.serving import podium_running, until, written
from browser.test_views import POD, ready, rows
from cli.running import run
from podium.example import fleet

Open = Callable[..., Any]
WAITING = "ml/train-xl-6np85"
LOOKS = [(400, "light"), (1440, "dark")]


def scenario_address(view: str, scenario: dict[str, Any], **more: str) -> str:
    others = "".join(f"&{name}={quote(value)}" for name, value in more.items())
    return f"#/{view}?s={quote(json.dumps(scenario))}{others}"


def do_it(page: Any) -> None:
    """Add the step, and wait for the cluster after it."""
    page.evaluate("delete document.querySelector('main').dataset.ready")
    page.click("text=Do it")
    ready(page, "cluster")


def title(page: Any) -> str:
    return str(page.inner_text(".scenario-title"))


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_why_is_it_pending(width: int, scheme: str, fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(fleet_url, width, 900, scheme), "home")
    assert "4 pending pods fit nowhere; 6 more would get a node now." in page.inner_text(".lead")
    first = page.inner_text(".troubles > li >> nth=0")
    assert first.startswith("2 pods: ml/train-xl-6np85")
    assert "Closest: gpu-b2, 320Mi memory missing" in first
    page.click(f"text={WAITING}")
    ready(page, "decision")
    assert "nvidia.com/gpu 4" in page.inner_text(".facts")
    # The dry run was made: evicting pods would not help, and the page does not say that it could.
    assert "Evicting pods was tried: none of a lower priority makes room." in page.inner_text(".lead")
    assert "could make room" not in page.inner_text(".lead")
    stages = page.locator(".funnel li").all_inner_texts()
    assert (stages[0], stages[-1].split()[0]) == ("63 nodes", "0")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_fix_is_tried_and_works(width: int, scheme: str, fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/decision?pod={WAITING}", width, 900, scheme), "decision")
    page.wait_for_selector(".fixes li")
    fix = page.inner_text(".fixes li >> nth=0")
    page.click(".fixes li >> nth=0 >> text=Try it")
    until(page, "/goes to gpu-b2/.test(document.querySelector('.lead')?.textContent)")
    assert fix.partition(":")[0] in title(page)
    page.click("#undo")
    until(page, "/fits on none/.test(document.querySelector('.lead')?.textContent)")
    assert title(page) == "Scenario: base"


def test_add_nodes_has_a_number_of_its_own(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster"), "cluster")
    page.select_option("#change", "scale")
    page.fill('input[aria-label="Pods"]', "12")
    page.select_option("#change", "add-nodes")
    assert page.input_value('input[aria-label="How many"]') == "1"
    page.fill('input[aria-label="How many"]', "3")
    page.fill('input[aria-label="Like node"]', "gpu-a1")
    do_it(page)
    assert "3 nodes like gpu-a1 added: gpu-a1-1, gpu-a1-2, gpu-a1-3." in page.inner_text(".what-if .lead")
    assert page.locator(".tile[data-new]").count() == 3


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_nodes_are_added_a_deployment_is_pasted_and_its_pod_is_opened(
    width: int, scheme: str, fleet_url: str, open_page: Open
) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster", width, 900, scheme), "cluster")
    page.select_option("#change", "add-nodes")
    page.fill('input[aria-label="How many"]', "3")
    page.fill('input[aria-label="Like node"]', "general-a1")
    do_it(page)
    page.select_option("#change", "apply")
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "guests", "namespace": "shop"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "guests"}},
            "template": {"metadata": {"labels": {"app": "guests"}}, "spec": {"containers": [{"name": "c"}]}},
        },
    }
    page.fill("textarea", json.dumps(deployment))
    do_it(page)
    page.click("a >> text=/shop\\/guests/ >> nth=0")
    ready(page, "decision")
    assert "goes to" in page.inner_text(".lead")
    assert "Deployment/guests" in page.inner_text(".facts")
    page.goto(f"{page.url}&open=general-a1-3")
    page.wait_for_selector('aside[data-node="general-a1-3"]')


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_drain_says_where_its_pods_go_and_is_obeyed_everywhere(
    width: int, scheme: str, fleet_url: str, open_page: Open
) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster", width, 900, scheme), "cluster")
    page.fill('input[aria-label="Nodes"]', "spot-c2")
    do_it(page)
    said = page.inner_text(".what-if .lead")
    assert "When spot-c2 is drained, all 5 pods find another node" in said
    assert "stay pending" not in said
    moved = page.locator("td a >> text=batch/report-gfx5j")
    assert moved.count() == 1
    page.click('.tile[data-node="spot-c2"]')
    page.wait_for_selector("aside[data-node]")
    assert "batch/report" not in page.inner_text("aside")
    page.keyboard.press("Escape")
    page.click("nav a >> text=Pods")
    ready(page, "pods")
    assert title(page) == "Scenario: base + drain spot-c2"
    page.fill("input[type=search]", "report-gfx5j")
    until(page, "document.querySelectorAll('.vt-row').length === 1")
    assert "spot-c2" not in rows(page)[0]


def test_a_zone_is_lost_and_found_again(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster"), "cluster")
    page.select_option("#change", "fail")
    page.fill('input[aria-label="Nodes"]', "zone=eu-1a")
    do_it(page)
    assert page.locator(".tile-row .tile").count() < 63
    assert "more fail" in page.inner_text(".what-if .lead")
    page.click("#undo")
    until(page, "document.querySelectorAll('.tile-row .tile').length === 63")
    assert title(page) == "Scenario: base"


def test_one_weight_change_has_one_number_everywhere(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/decision?pod={POD}"), "decision")
    page.locator('input[data-plugin="NodeResourcesBalancedAllocation"]').fill("20")
    until(page, "/would go elsewhere/.test(document.querySelector('.moved').textContent)")
    until(page, "!/looked at/.test(document.querySelector('.moved').textContent)")
    said = page.inner_text(".moved")
    link = page.get_attribute(".moves a >> nth=0", "href")
    assert "NodeResourcesBalancedAllocation" in link
    page.click("text=Compare the whole cluster")
    page.wait_for_selector("[data-ready='1']")
    assert page.inner_text(".lead .each") == said


def test_pods_and_compare_place_pending_pods_alike(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/pods?q=reindex+pending"), "pods")
    until(page, "[...document.querySelectorAll('.vt-row')].every((row) => /would go to/.test(row.textContent))")
    nodes = [row.rpartition("would go to ")[2] for row in rows(page)]
    assert len(nodes) == len(set(nodes)) == 4


@pytest.fixture(scope="module")
def two_profiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Path]]:
    """A server whose pods are decided by the second of two profiles, its cluster and its configuration."""
    folder = tmp_path_factory.mktemp("profiles")
    profiles: list[dict[str, Any]] = [
        {"schedulerName": "other", "plugins": {"score": {"disabled": [{"name": "*"}]}}},
        {"schedulerName": "default-scheduler"},
    ]
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (folder / "config.json").write_text(json.dumps({**config, "profiles": profiles}))
    file = written(folder / "fleet.json", fleet())
    with podium_running("serve", "-f", file, "--config", folder / "config.json") as (url, _):
        yield url, file, folder


def test_weights_are_those_of_the_pods_profile_and_the_download_gives_the_same_points(
    two_profiles: tuple[str, Path, Path], open_page: Open
) -> None:
    url, file, folder = two_profiles
    page = ready(open_page(f"{url}/#/decision?pod={POD}"), "decision")
    assert "Profile default-scheduler" in page.inner_text(".weights")
    page.locator('input[data-plugin="NodeResourcesBalancedAllocation"]').fill("20")
    until(page, "/2,0\\d\\d points/.test(document.querySelector('.lead').textContent)")
    total = rows(page)[0].split("\n")[1].replace(",", "")
    with page.expect_download() as download:
        page.click("text=Download the configuration")
    download.value.save_as(folder / "changed.json")
    arguments = ("explain", POD, "-f", file, "--config", folder / "changed.json", "--tie-break", "first", "-o", "json")
    assert str(json.loads(run(*arguments).stdout)["feasible"][0]["total"]) == total


def test_two_scenarios_are_compared(fleet_url: str, open_page: Open) -> None:
    drain = {"steps": [{"do": "drain", "nodes": ["spot-c2"]}]}
    page = open_page(f"{fleet_url}/{scenario_address('compare', drain, what='scenarios', run='1')}")
    page.wait_for_selector("[data-ready='1']")
    assert "with base + drain spot-c2 than with base" in page.inner_text(".lead")


def test_a_scenario_is_downloaded_and_given_to_the_command_line_and_to_a_server(
    fleet_url: str, open_page: Open, tmp_path: Path
) -> None:
    scenario = {"steps": [{"do": "add-nodes", "like": "gpu-a1", "count": 2}]}
    page = ready(open_page(f"{fleet_url}/{scenario_address('decision', scenario, pod=WAITING)}"), "decision")
    with page.expect_download() as download:
        page.click("text=Download >> nth=0")
    download.value.save_as(tmp_path / "scenario.json")
    file = written(tmp_path / "fleet.json", fleet())
    arguments = ("explain", WAITING, "-f", file, "--scenario", tmp_path / "scenario.json", "--tie-break", "first")
    explained = json.loads(run(*arguments, "-o", "json").stdout)
    assert explained["words"][0] == page.inner_text(".lead p >> nth=0")
    with podium_running("serve", "-f", file, "--scenario", tmp_path / "scenario.json") as (url, _):
        started = open_page(url)
        until(started, "/add 2 nodes like gpu-a1/.test(document.querySelector('.scenario-title')?.textContent)")


def test_what_is_too_long_for_the_address_is_kept_by_the_server(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster"), "cluster")
    labels = {f"label-{number}": "x" * 60 for number in range(2_000)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big", "namespace": "shop", "labels": labels}}
    page.select_option("#change", "apply")
    page.fill("textarea", json.dumps({**pod, "spec": {"containers": [{"name": "c"}]}}))
    do_it(page)
    assert len(page.url) < 500
    again = ready(open_page(page.url), "cluster")
    assert title(again) == title(page)
    event = {"time": 5, "event": "add", "object": {**pod, "spec": {"containers": [{"name": "c"}]}}}
    timeline = ready(open_page(f"{fleet_url}/#/time"), "time")
    timeline.fill("textarea", json.dumps(event))
    timeline.click("button >> text=Run")
    timeline.wait_for_selector("[data-ready='1']")
    assert len(timeline.url) < 500
    later = open_page(timeline.url)
    later.wait_for_selector("[data-ready='1']")
    assert json.loads(later.input_value("textarea")) == event


def test_the_skip_link_goes_to_the_content_and_stays_in_the_view(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/pods"), "pods")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "view"
    assert page.url.endswith("#/pods")


def test_empty_forms_and_lists_say_what_is_missing(fleet_url: str, open_page: Open, tmp_path: Path) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster"), "cluster")
    page.click("text=Do it")
    assert page.evaluate("document.activeElement.matches(':invalid')")
    page = ready(open_page(f"{fleet_url}/#/time"), "time")
    page.click("button >> text=Run")
    page.wait_for_selector("#problem:not([hidden])")
    assert "There are no events yet" in page.inner_text("#problem")
    nodes = written(tmp_path / "nodes.json", [item for item in fleet() if item["kind"] == "Node"])
    with podium_running("serve", "-f", nodes) as (url, _):
        empty = ready(open_page(f"{url}/#/pods"), "pods")
        assert "There are no pods in this cluster." in empty.inner_text(".vt")


def test_compare_begins_with_the_release_before(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/compare"), "compare")
    page.select_option("select >> nth=0", "releases")
    assert [page.input_value(f"select >> nth={place}") for place in (1, 2)] == ["v1.36", "v1.37"]


def test_a_server_that_is_gone_is_said_and_another_one_is_noticed(open_page: Open, tmp_path: Path) -> None:
    file = written(tmp_path / "fleet.json", fleet())
    with podium_running("serve", "-f", file) as (url, _):
        page = ready(open_page(f"{url}/#/pods"), "pods")
    page.fill("input[type=search]", "web")
    page.wait_for_selector("#problem:not([hidden])")
    assert "The server does not answer" in page.inner_text("#problem")
    smaller = written(tmp_path / "nodes.json", [item for item in fleet() if item["kind"] == "Node"])
    with podium_running("serve", "-f", smaller, port=int(url.rpartition(":")[2])):
        page.click("#problem button")
        until(page, "/63 nodes, 0 pods/.test(document.getElementById('about').textContent)")
