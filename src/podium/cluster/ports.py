"""The host ports in use on nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from podium.cluster.pods import HostPort

ANY_IP = "0.0.0.0"


class Ports:
    """Who uses which port: (protocol, port) -> row -> how often each address is taken."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def change(self, row: int, ports: Iterable[HostPort], amount: int) -> None:
        """Take (1) or free (-1) ports on a row."""
        for ip, protocol, port in ports:
            rows = self._used.setdefault((protocol, port), {})
            addresses = rows.setdefault(row, Counter())
            addresses[ip] += amount
            if not addresses[ip]:
                del addresses[ip]
            if not addresses:
                del rows[row]

    def conflicts(self, ports: Iterable[HostPort]) -> Iterator[int]:
        """The rows on which one of these ports is taken, possibly repeated; 0.0.0.0 overlaps every address."""
        for ip, protocol, port in ports:
            for row, addresses in self._used.get((protocol, port), {}).items():
                if ip == ANY_IP or ANY_IP in addresses or ip in addresses:
                    yield row

    def copy(self) -> Ports:
        twin = Ports()
        twin._used = {
            port: {row: addresses.copy() for row, addresses in rows.items()} for port, rows in self._used.items()
        }
        return twin
