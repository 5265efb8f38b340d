"""IP addresses, networks and URLs."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import unquote_plus

from podium.cel import cost
from podium.cel.overloads import Library
from podium.cel.values import Cidr, EvalError, Ip, Url, Value

library = Library()
declare = library.declare


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


@declare("ip(string): IP", cost=cost.traversal())
def _ip(text: str) -> Ip:
    return Ip(_parse_ip(text))


@declare("isIP(string): bool", cost=cost.traversal())
def _is_ip(text: str) -> bool:
    return _succeeds(_parse_ip, text)


def _succeeds(parse: Callable[[str], Value], text: str) -> bool:
    try:
        parse(text)
    except EvalError:
        return False
    return True


@declare("ip.isCanonical(string): bool", cost=cost.traversal(factor=2))
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


@declare("cidr(string): CIDR", cost=cost.traversal())
def _cidr(text: str) -> Cidr:
    return _parse_cidr(text)


@declare("isCIDR(string): bool", cost=cost.traversal())
def _is_cidr(text: str) -> bool:
    return _succeeds(_parse_cidr, text)


def _network(address: IPv4Address | IPv6Address, bits: int) -> int:
    return int(address) >> (address.max_prefixlen - bits)


@declare("CIDR.containsIP(IP): bool", cost=cost.contained(False, False))
def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    same_family = cidr.address.version == ip.address.version
    return same_family and _network(cidr.address, cidr.bits) == _network(ip.address, cidr.bits)


@declare("CIDR.containsIP(string): bool", cost=cost.contained(True, False))
def _contains_ip_text(cidr: Cidr, text: str) -> bool:
    return _contains_ip(cidr, Ip(_parse_ip(text)))


@declare("CIDR.containsCIDR(CIDR): bool", cost=cost.contained(False, True))
def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    return cidr.bits <= other.bits and _contains_ip(cidr, Ip(other.address))


@declare("CIDR.containsCIDR(string): bool", cost=cost.contained(True, True))
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
    """An absolute URL or path, as in the first line of an HTTP request; raises EvalError."""
    match = _URL.fullmatch(text)
    if match is None or not text or any(ord(each) < 0x20 or each == "\x7f" for each in text):
        raise EvalError(f"URL parse error during conversion from string: {text!r}")
    scheme, authority, path = (match[1] or "").lower(), match[2], match[3]
    # The fragment belongs to the path or the query when the URL is checked, and is no part of them later.
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


@declare("url(string): URL", cost=cost.traversal())
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
