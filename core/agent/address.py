"""Address: where a fetch may go. Judged by the address itself, after every name is resolved.

1. Only http and https, without a user name, to a host of the allow-list; ports 80 and 443, or the one that its entry
   names (`example.org:8080`). `*.example.org` stands for all below example.org, not for itself.
2. Every address that the name resolves to must be a public one. Names like 2130706433 or 0177.0.0.1 are resolved as
   the system would, so what they mean is judged, not how they look.
3. The connection is made to the address that was judged; the name is not resolved again.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from core.agent.tool import ToolError

MAX_URL = 2_000
"""Characters."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, for a port."""

_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True)
class Place:
    """A URL in its parts, and the address that stands for its host."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query."""
    address: str

    @property
    def url(self) -> str:
        """The URL with the address in place of the host: nothing is left to be resolved."""
        shown = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.scheme}://{shown}:{self.port}{self.target}"

    @property
    def authority(self) -> str:
        """What the server is told that it was asked as."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def named(self) -> str:
        """The URL as it was meant."""
        return f"{self.scheme}://{self.authority}{self.target}"


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """As this machine resolves names.

    Raises:
        OSError: there is no such name.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def place_of(
    url: str, hosts: Collection[str], resolve: Resolve, also: Collection[str] = frozenset()
) -> Place:
    """Where a URL leads, if it may be asked.

    Args:
        url: from the model, or from a redirect.
        hosts: the allow-list.
        resolve: finds the addresses of a name.
        also: addresses that are allowed though they are not public (tests use a server on this machine).

    Raises:
        ToolError: it may not, with the reason.
    """
    scheme, host, port, target = _parts(url)
    if not any(_matches(entry, host, port, _PORTS[scheme]) for entry in hosts):
        allowed = ", ".join(hosts) or "none"
        raise ToolError(f"{host}:{port} is not on the list of hosts that may be asked ({allowed})")
    try:
        addresses = await resolve(host, port)
    except OSError as e:
        raise ToolError(f"the host {host} is not known: {e.strerror or e}") from e
    if not addresses:
        raise ToolError(f"the host {host} has no address")
    for address in addresses:
        if address not in also and not is_public(address):
            raise ToolError(f"the host {host} leads to {address}, which is no public address")
    return Place(scheme, host, port, target, addresses[0])


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet, for all that it could be turned into on the way.

    >>> [is_public(a) for a in ("93.184.216.34", "10.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "224.0.0.1")]
    [True, False, False, False, False]
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # with a zone, as link-local ones have
        return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return True
    # Forms that carry an IPv4 address are unpacked by a gateway, out of sight.
    return not (ip.ipv4_mapped or ip.sixtofour or ip.teredo or ip.is_site_local or ip in _NAT64)


def _parts(url: str) -> tuple[str, str, int, str]:
    if len(url) > MAX_URL:
        raise ToolError(f"the URL has {len(url)} characters, more than {MAX_URL}")
    if any(c <= " " or c in '\\\x7f"<>' for c in url):
        raise ToolError("the URL holds characters that no URL may have")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").rstrip(".")
        host = host if ":" in host else host.encode("idna").decode().lower()
    except (ValueError, UnicodeError) as e:
        raise ToolError(f"the URL cannot be read: {e}") from e
    if parts.scheme not in _PORTS:
        raise ToolError("the URL must start with http:// or https://")
    if not host or parts.username is not None or parts.password is not None:
        raise ToolError("the URL must name a host, and no user")
    query = f"?{parts.query}" if parts.query else ""
    target = quote((parts.path or "/") + query, safe="/%?&=+,;:@!$'()*~-._[]#")
    return parts.scheme, host, port or _PORTS[parts.scheme], target


def _matches(entry: str, host: str, port: int, usual: int) -> bool:
    pattern, _, named = entry.lower().partition(":") if entry.count(":") == 1 else (entry.lower(), "", "")
    if port != (int(named) if named.isdigit() else usual):
        return False
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
