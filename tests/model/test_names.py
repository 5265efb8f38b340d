"""Names: the syntax of label keys and values, subdomains and extended resources."""

from __future__ import annotations

import pytest

from podium.model.meta import dns_subdomain_errors, extended_resource_errors, label_value_errors, qualified_name_errors

LABEL_63, LABEL_64 = "a" * 63, "a" * 64
DOMAIN_253, DOMAIN_254 = "a" * 253, "a" * 254


@pytest.mark.parametrize("name", ["a", "A", "1", "a-b_c.d", LABEL_63, "example.com/A_1", f"{DOMAIN_253}/a"])
def test_qualified_names(name: str) -> None:
    assert qualified_name_errors(name) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-a",
        "a-",
        "a b",
        "a\n",
        "é",
        LABEL_64,
        "/a",
        "a/",
        "a/b/c",
        "Example.com/a",
        "a..b/c",
        "a_b/c",
        f"{DOMAIN_254}/a",
        "\u0661",
    ],
)
def test_names_that_are_not_qualified(name: str) -> None:
    assert qualified_name_errors(name)


def test_both_parts_of_a_qualified_name_are_told() -> None:
    prefix, name = qualified_name_errors("exa mple/..")
    assert prefix.startswith("prefix part")
    assert name.startswith("name part")


@pytest.mark.parametrize("value", ["", "a", "Z", "0", "a.b_c-d", LABEL_63])
def test_label_values(value: str) -> None:
    assert label_value_errors(value) == []


@pytest.mark.parametrize("value", ["-", ".a", "a.", "a/b", "a b", "a\n", LABEL_64])
def test_values_no_label_has(value: str) -> None:
    assert label_value_errors(value)


@pytest.mark.parametrize("domain", ["a", "1.2", "example.com", "a-b.c", DOMAIN_253])
def test_subdomains(domain: str) -> None:
    assert dns_subdomain_errors(domain) == []


@pytest.mark.parametrize("domain", ["", "A", ".a", "a.", "a..b", "-a", "a-.b", "a_b", DOMAIN_254])
def test_no_subdomains(domain: str) -> None:
    assert dns_subdomain_errors(domain)


@pytest.mark.parametrize("name", ["example.com/gpu", "nvidia.com/gpu", "k8s.io/x"])
def test_extended_resources(name: str) -> None:
    assert extended_resource_errors(name) == []


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "no-domain",
        "kubernetes.io/x",
        "sub.kubernetes.io/x",
        "requests.example.com/x",
        "bad name/x",
        # Too long once a quota puts `requests.` in front.
        f"{'a' * 245}/x",
    ],
)
def test_no_extended_resources(name: str) -> None:
    assert extended_resource_errors(name)
