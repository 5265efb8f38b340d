"""Each view of the page, used as a person would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser.serving import until, written
from cli.running import run
from podium.example import fleet

Open = Callable[..., Any]
POD = "batch/reindex-hdp6r"


def ready(page: Any, view: str) -> Any:
    page.wait_for_selector(f'main[data-ready="{view}"]')
    return page


def rows(page: Any) -> list[str]:
    return [text.strip() for text in page.locator(".vt-row").all_inner_texts()]


def test_pods_are_searched_and_open_their_decision(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/pods"), "pods")
    assert "pending" in rows(page)[0]
    page.fill("input[type=search]", "insufficient gpu")
    until(page, "document.querySelectorAll('.vt-row').length === 2")
    assert all("ml" in row and "Insufficient" in row for row in rows(page))
    page.focus(".vt")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    ready(page, "decision")
    assert "fits on none of the 63 nodes" in page.inner_text(".lead")
    page.go_back()
    ready(page, "pods")
    assert page.input_value("input[type=search]") == "insufficient gpu"


def test_a_decision_is_sorted_filtered_and_explained(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/decision?pod={POD}"), "decision")
    assert "goes to spot-c2 with 634 points, 3 more than the second, spot-a3" in page.inner_text(".lead")
    assert rows(page)[0].startswith("★ spot-c2")
    page.click("button.sort >> text=Node >> nth=0")
    assert rows(page)[0].startswith("general-a1")
    page.reload()
    ready(page, "decision")
    assert rows(page)[0].startswith("general-a1")
    page.select_option("select >> nth=0", "raw")
    page.fill("input[type=search]", "spot-c")
    assert len(rows(page)) == 3
    page.click(".vt-row >> nth=0")
    page.wait_for_selector("aside[data-node]")
    assert "LeastAllocated: (" in page.inner_text("aside")
    assert "Why not" in page.inner_text("aside")
    page.click("aside .close")
    page.click("section summary >> text=TaintToleration")
    assert page.locator(".names button").first.is_visible()


def test_an_opened_node_has_an_address_and_escape_closes_it(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/decision?pod={POD}&open=spot-a3"), "decision")
    page.wait_for_selector('aside[data-node="spot-a3"]')
    page.keyboard.press("Escape")
    assert not page.locator("aside").is_visible()
    assert "open=" not in page.url
    page.focus(".vt")
    page.keyboard.press("Enter")
    page.wait_for_selector('aside[data-node="spot-c2"]')
    assert "open=spot-c2" in page.url
    assert "Why not" not in page.inner_text("aside")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "vt tall"


@pytest.mark.parametrize("view", ["pods", "decision", "weights", "cluster", "time", "compare"])
def test_every_view_can_be_saved_as_a_report_and_as_json(view: str, fleet_url: str, open_page: Open) -> None:
    from browser.test_looks import VIEWS

    page = ready(open_page(f"{fleet_url}/{VIEWS[view]}"), "decision" if view == "weights" else view)
    saved = {}
    for button in ("HTML report", "JSON"):
        with page.expect_download() as download:
            page.click(f"button >> text={button}")
        saved[button] = Path(download.value.path()).read_text()
    assert saved["HTML report"].startswith("<!doctype html>")
    assert json.loads(saved["JSON"])["apiVersion"].startswith("podium")
    if view == "weights":
        assert "2,040 points" in saved["HTML report"]
        assert json.loads(saved["JSON"])["feasible"][0]["total"] == 2040


def test_what_is_not_there_is_said(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/pods?q=nosuchpod"), "pods")
    assert "No pod has all of these words." in page.inner_text(".vt")
    page = ready(open_page(f"{fleet_url}/#/decision?pod={POD}&node=nosuchnode"), "decision")
    assert "No node with this in its name fits the pod." in page.inner_text(".vt")


def test_sliders_turn_the_decision_and_the_download_does_too(fleet_url: str, open_page: Open, tmp_path: Path) -> None:
    page = ready(open_page(f"{fleet_url}/#/decision?pod={POD}"), "decision")
    slider = page.locator('input[data-plugin="NodeResourcesBalancedAllocation"]')
    slider.fill("20")
    until(page, "/2,040 points/.test(document.querySelector('.lead').textContent)")
    until(page, "/would go elsewhere/.test(document.querySelector('.moved').textContent)")
    winner = rows(page)[0].split("\n")[0].removeprefix("★ ").strip()
    total = rows(page)[0].split("\n")[1].replace(",", "")
    with page.expect_download() as download:
        page.click("text=Download the configuration")
    config = tmp_path / "config.json"
    download.value.save_as(config)
    fleet_file = written(tmp_path / "fleet.json", fleet())
    arguments = ("explain", POD, "-f", fleet_file, "--config", config, "--tie-break", "first", "-o", "json")
    explained = json.loads(run(*arguments).stdout)
    assert (explained["node"], str(explained["feasible"][0]["total"])) == (winner, total)
    address = page.url
    again = ready(open_page(address), "decision")
    assert rows(again)[0] == rows(page)[0]
    page.click("text=Back to today's")
    until(page, "/634 points/.test(document.querySelector('.lead').textContent)")
    assert "s=" not in page.url


def test_switching_a_plugin_off_asks_the_server(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/decision?pod={POD}"), "decision")
    before = len(page.locator(".vt-head > div").all())
    page.uncheck('input[aria-label="NodeAffinity is on"]')
    until(page, f"document.querySelectorAll('.vt-head > div').length === {before - 1}")
    page.select_option("select >> nth=1", "MostAllocated")
    until(page, "location.hash.includes('MostAllocated')")


def test_what_ifs_add_up_and_can_be_undone(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster"), "cluster")
    assert page.locator(".tile-row .tile").count() == 63
    page.click('.tile[data-node="spot-c2"]')
    page.wait_for_selector("aside[data-node]")
    page.click("aside .close")
    page.select_option("#change", "drain")
    page.click("text=Do it")
    until(page, "/all 5 pods find another node/.test(document.querySelector('.what-if .lead')?.textContent)")
    ready(page, "cluster")
    page.select_option("#change", "scale")
    page.fill('input[aria-label="Workload"]', "shop/Deployment/web")
    page.fill('input[type="number"]', "60")
    page.click("text=Do it")
    until(page, "/from 36 pods to 60/.test(document.querySelector('.what-if .lead')?.textContent)")
    ready(page, "cluster")
    assert "new pods would get a node" in page.inner_text(".what-if .lead")
    again = ready(open_page(page.url), "cluster")
    assert again.inner_text(".what-if .lead") == page.inner_text(".what-if .lead")
    page.click("summary >> text=parts")
    page.click(".steps li >> nth=0 >> text=undo")
    until(page, "document.querySelectorAll('.steps li').length === 1")
    assert page.inner_text(".scenario-title") == "Scenario: base + scale shop/web to 60"
    page.click("text=Back to base")
    until(page, "document.querySelector('.scenario-title').textContent === 'Scenario: base'")


def test_pasted_yaml_that_cannot_be_read_is_said(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster"), "cluster")
    page.select_option("#change", "apply")
    page.fill("textarea", "kind: [")
    page.click("text=Do it")
    page.wait_for_selector("#problem:not([hidden])")
    assert "step 1, apply YAML: the objects document 1" in page.inner_text("#problem")


def test_tiles_are_walked_with_the_keyboard(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/cluster"), "cluster")
    page.focus(".tile[tabindex='0']")
    first = page.evaluate("document.activeElement.dataset.node")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.dataset.node")
    assert first != second
    page.keyboard.press("Enter")
    page.wait_for_selector(f'aside[data-node="{second}"]')


def test_time_is_played(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/time"), "time")
    page.click("text=An example for this cluster")
    until(page, "document.querySelector('textarea').value.includes('drain')")
    page.click("button >> text=Run")
    page.wait_for_selector("[data-ready='1']")
    assert page.locator("polyline").count() == 5
    page.locator(".scrubber").fill("300")
    assert "0:05:00 of" in page.inner_text("output >> nth=0")
    before = page.inner_text(".log")
    page.click("button >> text=Play")
    page.wait_for_timeout(600)
    page.click("button >> text=Pause")
    assert page.inner_text(".log") != before


def test_two_releases_are_compared(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/compare"), "compare")
    page.click("button >> text=Compare")
    page.wait_for_selector("[data-ready='1']")
    assert "go elsewhere" in page.inner_text(".lead")
    assert page.locator("table").count() >= 1


def test_an_address_that_names_nothing_says_so(fleet_url: str, open_page: Open) -> None:
    page = open_page(f"{fleet_url}/#/decision?pod={quote('no/such')}")
    page.wait_for_selector("#problem:not([hidden])")
    assert "is not in the input" in page.inner_text("#problem")


def test_light_and_dark(fleet_url: str, open_page: Open) -> None:
    page = ready(open_page(f"{fleet_url}/#/pods"), "pods")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    ready(page, "pods")
    assert light != dark == page.evaluate("getComputedStyle(document.body).backgroundColor")
    page = ready(open_page(f"{fleet_url}/#/pods", scheme="dark"), "pods")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
