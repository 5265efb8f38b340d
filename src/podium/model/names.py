"""The syntax of Kubernetes names: what may be a label key, a label value, a DNS subdomain, an extended resource.

Each function gives the reasons why a name is wrong, none when it is right.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_WORD_RULE = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric one"
_SUBDOMAIN_RULE = (
    "must consist of dot-separated lower case alphanumeric characters or '-', each part starting and ending "
    "with an alphanumeric one"
)

WORD_MAX_LENGTH = 63
SUBDOMAIN_MAX_LENGTH = 253

NATIVE_DOMAIN = "kubernetes.io/"
QUOTA_PREFIX = "requests."


def dns_subdomain_errors(value: str) -> list[str]:
    """Why `value` is not an RFC 1123 subdomain such as `example.com`."""
    errors = []
    if len(value) > SUBDOMAIN_MAX_LENGTH:
        errors.append(f"must be no more than {SUBDOMAIN_MAX_LENGTH} characters")
    if not _SUBDOMAIN.fullmatch(value):
        errors.append(_SUBDOMAIN_RULE)
    return errors


def qualified_name_errors(value: str) -> list[str]:
    """Why `value` is not a qualified name: the syntax of label keys and resource names, `[subdomain/]name`."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return ["must have at most one '/', between a DNS subdomain and a name (such as 'example.com/my.name')"]
    errors = []
    if slash and not prefix:
        errors.append("prefix part must not be empty")
    elif slash:
        errors.extend(f"prefix part {error}" for error in dns_subdomain_errors(prefix))
    if not name:
        errors.append("name part must not be empty")
    elif len(name) > WORD_MAX_LENGTH:
        errors.append(f"name part must be no more than {WORD_MAX_LENGTH} characters")
    if name and not _WORD.fullmatch(name):
        errors.append(f"name part {_WORD_RULE}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """Why `value` cannot be the value of a label; the empty value is right."""
    errors = []
    if len(value) > WORD_MAX_LENGTH:
        errors.append(f"must be no more than {WORD_MAX_LENGTH} characters")
    if value and not _WORD.fullmatch(value):
        errors.append(_WORD_RULE)
    return errors


def extended_resource_errors(value: str) -> list[str]:
    """Why `value` is not the name of an extended resource: qualified, outside kubernetes.io, and fit for a quota."""
    errors = qualified_name_errors(value)
    if errors:
        return errors
    native = "/" not in value or NATIVE_DOMAIN in value
    # A quota speaks of `requests.<name>`, so that has to be a qualified name too.
    if native or value.startswith(QUOTA_PREFIX) or qualified_name_errors(QUOTA_PREFIX + value):
        return ["is an invalid extended resource name"]
    return []
