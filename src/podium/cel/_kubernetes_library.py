"""Kubernetes' own functions: quantities, semantic versions, named formats, IP addresses, networks and URLs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from operator import attrgetter
from typing import Any
from urllib.parse import unquote_plus

from podium.cel import _types as types
from podium.cel._standard_library import checked_int
from podium.cel._types import Library
from podium.cel._values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NONE,
    Cidr,
    EvalError,
    Ip,
    NamedFormat,
    Optional,
    QuantityValue,
    Semver,
    Url,
    Value,
)
from podium.errors import QuantityError
from podium.model.quantity import parse_quantity

library = Library()
declare = library.declare

_NANO = 10**9
_SHAPE = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@lru_cache(maxsize=65_536)
def to_amount(text: str | int | float) -> QuantityValue:
    """Parse a quantity to the amount that Kubernetes stores; raises QuantityError."""
    amount = parse_quantity(text)
    nanos = amount.numerator * (_NANO // amount.denominator)
    return QuantityValue(nanos, _scale(str(text), nanos))


def _scale(text: str, nanos: int) -> int | None:
    """The power of ten of the int64 in which Kubernetes stores a quantity; None if it is stored as a big decimal."""
    match = _SHAPE.fullmatch(text)
    assert match is not None
    whole, fraction, suffix = match[1] or "0", match[2] or "", match[3]
    if suffix in _BINARY:
        fast = not fraction and 14 - len(whole) - int(_BINARY[suffix] * 3 / 10) >= 0
        return 0 if fast and MIN_INT <= nanos // _NANO <= MAX_INT else None
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    scale = exponent - len(fraction)
    return scale if len(whole) + len(fraction) <= 18 and scale >= -9 else None


def _succeeds(parse: Callable[[str], Value], text: str) -> bool:
    """Whether `parse` accepts the text."""
    try:
        parse(text)
    except EvalError:
        return False
    return True


@declare("quantity(string): quantity", cost=types.traversal())
def _quantity(text: str) -> QuantityValue:
    try:
        if text != text.strip():
            raise QuantityError(f"{text!r} is not a quantity")
        return to_amount(text)
    except QuantityError as error:
        raise EvalError(error.message) from None


@declare("isQuantity(string): bool", cost=types.traversal())
def _is_quantity(text: str) -> bool:
    return _succeeds(_quantity, text)


@declare("sign(quantity): int")
def _sign(amount: QuantityValue) -> int:
    return (amount.nanos > 0) - (amount.nanos < 0)


def _declare_order(kind: str, key: Callable[[Value], Any]) -> None:
    """Declare that values of a kind are compared by their keys."""
    declare(f"{kind}.isGreaterThan({kind}): bool")(lambda one, other: key(one) > key(other))
    declare(f"{kind}.isLessThan({kind}): bool")(lambda one, other: key(one) < key(other))
    declare(f"{kind}.compareTo({kind}): int")(lambda one, other: (key(one) > key(other)) - (key(one) < key(other)))


_declare_order("quantity", attrgetter("nanos"))


@declare("quantity.asApproximateFloat(): double")
def _approximate(amount: QuantityValue) -> float:
    scale = -9 if amount.scale is None else amount.scale
    units = amount.nanos * 10**-scale // _NANO if scale < 0 else amount.nanos // _NANO // 10**scale
    try:
        return float(units) * 10.0**scale
    except OverflowError:
        return math.inf if amount.nanos > 0 else -math.inf


@declare("quantity.isInteger(): bool")
def _is_integer(amount: QuantityValue) -> bool:
    return amount.scale is not None and amount.scale >= 0 and MIN_INT <= amount.nanos // _NANO <= MAX_INT


@declare("quantity.asInteger(): int")
def _as_integer(amount: QuantityValue) -> int:
    if not _is_integer(amount):
        raise EvalError("cannot convert value to integer")
    return amount.nanos // _NANO


@declare("quantity.add(quantity): quantity")
def _add(one: QuantityValue, other: QuantityValue) -> QuantityValue:
    nanos = one.nanos + other.nanos
    if one.scale is None or other.scale is None:
        return QuantityValue(nanos, None, True)
    if not other.nanos or not one.nanos:
        return QuantityValue(nanos, one.scale if not other.nanos else other.scale, True)
    scale = min(one.scale, other.scale)
    units = nanos * 10**-scale // _NANO if scale < 0 else nanos // _NANO // 10**scale
    return QuantityValue(nanos, scale if MIN_INT <= units <= MAX_INT else None, True)


@declare("quantity.add(int): quantity")
def _add_int(one: QuantityValue, number: int) -> QuantityValue:
    return _add(one, QuantityValue(number * _NANO, 0))


@declare("quantity.sub(quantity): quantity")
def _sub(one: QuantityValue, other: QuantityValue) -> QuantityValue:
    return _add(one, QuantityValue(-other.nanos, other.scale))


@declare("quantity.sub(int): quantity")
def _sub_int(one: QuantityValue, number: int) -> QuantityValue:
    return _add(one, QuantityValue(-number * _NANO, 0))


# Longer than any version that the API accepts; it also bounds the size of its numbers.
_MAX_VERSION = 4_000
_NUMBER = r"(?:0|[1-9][0-9]*)"
_SEMVER = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-([0-9A-Za-z.-]*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


@lru_cache(maxsize=65_536)
def parse_semver(text: str) -> Semver:
    """Parse a semantic version strictly; raises EvalError."""
    match = _SEMVER.fullmatch(text)
    if match is None:
        raise EvalError(f"{text!r} is not a semantic version")
    if len(text) > _MAX_VERSION:
        raise EvalError("the semantic version is too long")
    core = (int(match[1]), int(match[2]), int(match[3]))
    parts = [] if match[4] is None else match[4].split(".")
    prerelease = tuple(int(part) if part.isdigit() else part for part in parts)
    wrong = any(not part or (part.isdigit() and part[0] == "0" and part != "0") for part in parts)
    if wrong or any(isinstance(number, int) and number > MAX_UINT for number in (*core, *prerelease)):
        raise EvalError(f"{text!r} is not a semantic version")
    return Semver(text, core, prerelease)


def _normalized(text: str) -> str:
    """Normalize a version: remove a leading v and leading zeros, and add missing minor and patch numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped and stripped[0] in "0123456789" else f"0{stripped}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvalError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


@declare("semver(string): semver", cost=types.traversal())
def _semver(text: str) -> Semver:
    return parse_semver(text)


@declare("semver(string, bool): semver", cost=types.traversal())
def _semver_normalized(text: str, normalize: bool) -> Semver:
    return parse_semver(_normalized(text) if normalize else text)


@declare("isSemver(string): bool", "isSemver(string, bool): bool", cost=types.traversal())
def _is_semver(text: str, normalize: bool = False) -> bool:
    return _succeeds(lambda given: _semver_normalized(given, normalize), text)


_declare_order("semver", attrgetter("key"))


@declare("semver.major(): int")
def _major(version: Semver) -> int:
    return checked_int(version.core[0])


@declare("semver.minor(): int")
def _minor(version: Semver) -> int:
    return checked_int(version.core[1])


@declare("semver.patch(): int")
def _patch(version: Semver) -> int:
    return checked_int(version.core[2])


def _parse_ip(text: str) -> IPv4Address | IPv6Address:
    if "%" in text:
        raise EvalError(f"IP address {text!r} with zone value is not allowed")
    try:
        address = ip_address(text)
    except ValueError:
        raise EvalError(f"IP Address {text!r} parse error during conversion from string") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvalError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return address


@declare("ip(string): IP", cost=types.traversal())
def _ip(text: str) -> Ip:
    return Ip(_parse_ip(text))


@declare("isIP(string): bool", cost=types.traversal())
def _is_ip(text: str) -> bool:
    return _succeeds(_parse_ip, text)


@declare("ip.isCanonical(string): bool", cost=types.traversal(factor=2))
def _is_canonical(text: str) -> bool:
    return str(_parse_ip(text)) == text


@declare("IP.family(): int")
def _family(ip: Ip) -> int:
    return int(ip.address.version)


@declare("IP.isUnspecified(): bool")
def _is_unspecified(ip: Ip) -> bool:
    return ip.address.is_unspecified


@declare("IP.isLoopback(): bool")
def _is_loopback(ip: Ip) -> bool:
    return ip.address.is_loopback


def _link_local_multicast(address: IPv4Address | IPv6Address) -> bool:
    packed = address.packed
    return packed[:3] == b"\xe0\x00\x00" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


@declare("IP.isLinkLocalMulticast(): bool")
def _is_link_local_multicast(ip: Ip) -> bool:
    return _link_local_multicast(ip.address)


def _link_local(address: IPv4Address | IPv6Address) -> bool:
    packed = address.packed
    return packed[:2] == b"\xa9\xfe" if len(packed) == 4 else packed[0] == 0xFE and packed[1] & 0xC0 == 0x80


@declare("IP.isLinkLocalUnicast(): bool")
def _is_link_local_unicast(ip: Ip) -> bool:
    return _link_local(ip.address)


@declare("IP.isGlobalUnicast(): bool")
def _is_global_unicast(ip: Ip) -> bool:
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or _link_local(address)
    return not special and address.packed != b"\xff" * 4


def _parse_cidr(text: str) -> Cidr:
    address, slash, bits = text.rpartition("/")
    if not slash or not re.fullmatch(r"0|[1-9][0-9]{0,2}", bits):
        raise EvalError(f"network address parse error during conversion from string: {text!r}")
    parsed = _parse_ip(address)
    if int(bits) > parsed.max_prefixlen:
        raise EvalError(f"network address parse error during conversion from string: {text!r}")
    return Cidr(parsed, int(bits))


@declare("cidr(string): CIDR", cost=types.traversal())
def _cidr(text: str) -> Cidr:
    return _parse_cidr(text)


@declare("isCIDR(string): bool", cost=types.traversal())
def _is_cidr(text: str) -> bool:
    return _succeeds(_parse_cidr, text)


def _network(address: IPv4Address | IPv6Address, bits: int) -> int:
    return int(address) >> (address.max_prefixlen - bits)


@declare("CIDR.containsIP(IP): bool", cost=types.contained(False, False))
def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    same_family = cidr.address.version == ip.address.version
    return same_family and _network(cidr.address, cidr.bits) == _network(ip.address, cidr.bits)


@declare("CIDR.containsIP(string): bool", cost=types.contained(True, False))
def _contains_ip_text(cidr: Cidr, text: str) -> bool:
    return _contains_ip(cidr, Ip(_parse_ip(text)))


@declare("CIDR.containsCIDR(CIDR): bool", cost=types.contained(False, True))
def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    return cidr.bits <= other.bits and _contains_ip(cidr, Ip(other.address))


@declare("CIDR.containsCIDR(string): bool", cost=types.contained(True, True))
def _contains_cidr_text(cidr: Cidr, text: str) -> bool:
    return _contains_cidr(cidr, _parse_cidr(text))


@declare("CIDR.ip(): IP")
def _cidr_ip(cidr: Cidr) -> Ip:
    return Ip(cidr.address)


@declare("CIDR.prefixLength(): int")
def _prefix_length(cidr: Cidr) -> int:
    return cidr.bits


@declare("CIDR.masked(): CIDR")
def _masked(cidr: Cidr) -> Cidr:
    host_bits = cidr.address.max_prefixlen - cidr.bits
    return Cidr(type(cidr.address)(_network(cidr.address, cidr.bits) << host_bits), cidr.bits)


_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST = re.compile(r"(?:\[[^\[\]]*\]|[^\[\]:]*)(?::[0-9]*)?")
_HOST_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]*")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")


def parse_url(text: str) -> Url:
    """Parse an absolute URL or an absolute path, as in the first line of an HTTP request; raises EvalError."""
    match = _URL.fullmatch(text)
    if match is None or not text or any(ord(each) < 0x20 or each == "\x7f" for each in text):
        raise EvalError(f"URL parse error during conversion from string: {text!r}")
    scheme, authority, path = (match[1] or "").lower(), match[2], match[3]
    # The check takes the fragment as part of the path or the query; the parsed URL does not have it.
    checked = path if match[4] is not None or match[5] is None else f"{path}#{match[5]}"
    absolute = bool(scheme) or path.startswith("/") or text == "*"
    user, _, host = (authority or "").rpartition("@")
    opaque = scheme and authority is None and not path.startswith("/")
    wrong_host = not _HOST.fullmatch(host) or not _HOST_CHARACTERS.fullmatch(host) or not _USER.fullmatch(user)
    wrong_path = not opaque and _BAD_ESCAPE.search(checked)
    if not absolute or wrong_host or wrong_path:
        raise EvalError(f"URL parse error during conversion from string: {text!r}")
    if _BAD_ESCAPE.search(host) or _BAD_ESCAPE.search(user):
        raise EvalError(f"URL parse error during conversion from string: {text!r}")
    return Url(text, scheme, host, "" if opaque else path, match[4] or "")


@declare("url(string): URL", cost=types.traversal())
def _url(text: str) -> Url:
    return parse_url(text)


@declare("isURL(string): bool")
def _is_url(text: str) -> bool:
    return _succeeds(parse_url, text)


@declare("URL.getScheme(): string")
def _scheme(url: Url) -> str:
    return url.scheme


@declare("URL.getHost(): string")
def _host(url: Url) -> str:
    return url.host


def _split_host(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or not (port.isdigit() or not port) or "]" in port:
        name, port = host, ""
    return name.removeprefix("[").removesuffix("]") if name.startswith("[") else name, port


@declare("URL.getHostname(): string")
def _hostname(url: Url) -> str:
    return _split_host(url.host)[0]


@declare("URL.getPort(): string")
def _port(url: Url) -> str:
    return _split_host(url.host)[1]


_PATH_SAFE = re.compile(r"[^A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]")


@declare("URL.getEscapedPath(): string")
def _escaped_path(url: Url) -> str:
    return _PATH_SAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), url.path)


@declare("URL.getQuery(): map(string, list(string))")
def _query(url: Url) -> dict[Value, Value]:
    values: dict[Value, Value] = {}
    for part in url.query.split("&"):
        key, _, value = part.partition("=")
        if part and ";" not in part and not _BAD_ESCAPE.search(part):
            values.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return values


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")

Problems = Callable[[str], list[str]]


def _matching(pattern: str, longest: int, prefix: bool = False) -> Problems:
    """Make a check that returns what is wrong with a name; with `prefix`, it may end in a dash."""
    compiled = re.compile(pattern)

    def problems(text: str) -> list[str]:
        if prefix and len(text) > 1 and text.endswith("-"):
            text = f"{text[:-2]}a"
        found = [f"must be no more than {longest} bytes"] if len(text.encode()) > longest else []
        return found if compiled.fullmatch(text) else [*found, f"must match {pattern}"]

    return problems


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.partition("/")
    if not slash:
        prefix, name = "", text
    if "/" in name:
        return ["must consist of a name with an optional DNS subdomain prefix and '/'"]
    found = _matching(_SUBDOMAIN, 253)(prefix) if slash else []
    return found + _matching(_NAME, 63)(name)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None


def _is_datetime(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.split("t")[0])
    return match is not None and _is_date(day) and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _unless(accepted: Callable[[str], bool], problem: str) -> Problems:
    return lambda text: [] if accepted(text) else [problem]


_FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _matching(_LABEL, 63), 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _matching(_SUBDOMAIN, 253), 60),
    "dns1035Label": NamedFormat("DNS1035Label", _matching("[a-z]([-a-z0-9]*[a-z0-9])?", 63), 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _matching(_LABEL, 63, True), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _matching(_SUBDOMAIN, 253, True), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _matching("[a-z]([-a-z0-9]*[a-z0-9])?", 63, True), 30),
    "labelValue": NamedFormat("LabelValue", _matching(f"({_NAME})?", 63), 40),
    "uri": NamedFormat("URI", _unless(_is_url, "invalid URI"), 1103),
    "uuid": NamedFormat(
        "uuid", _unless(lambda text: bool(re.fullmatch(_UUID, text)), "does not match the UUID format"), 70
    ),
    "byte": NamedFormat("byte", _unless(lambda text: bool(re.fullmatch(_BASE64, text)), "invalid base64"), 84),
    "date": NamedFormat("date", _unless(_is_date, "invalid date"), 71),
    "datetime": NamedFormat("datetime", _unless(_is_datetime, "invalid datetime"), 71),
}


def _constant(name: str) -> Callable[[], NamedFormat]:
    return lambda: _FORMATS[name]


for _format_name in _FORMATS:
    declare(f"format.{_format_name}(): Format")(_constant(_format_name))


@declare("format.named(string): optional(Format)")
def _named(name: str) -> Optional:
    return Optional(True, _FORMATS[name]) if name in _FORMATS else NONE


@declare("Format.validate(string): optional(list(string))", cost=types.validation)
def _validate(form: NamedFormat, text: str) -> Optional:
    problems: list[Value] = [*form.problems(text)]
    return Optional(True, problems) if problems else NONE
