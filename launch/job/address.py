"""The address of a node that other nodes can reach.

One design choice: the address is picked from what the node really has, on the node itself; a name
looked up elsewhere may lead to 127.0.1.1 (Debian's own entry) or to another network.
"""

from __future__ import annotations

import argparse
import ipaddress
import socket
import sys
import time
from collections.abc import Sequence

import psutil

OUTSIDE = ("192.0.2.1", "2001:db8::1")
"""Documentation addresses: a datagram socket connected to one tells the route; none is sent."""


class AddressError(ValueError):
    """No address fits; the message lists what the node has."""


def choose(
    addresses: dict[str, list[str]],
    named: Sequence[str],
    routed: str | None,
    interface: str | None = None,
) -> str:
    """Pick among `addresses` (interface -> addresses).

    The interface asked for; else what the host's name stands for (`named`), if the node really has
    it; else the one with the default route (`routed`); else the only one left. Loopback is taken
    only where there is nothing else: all nodes are then on one machine.

    Raises AddressError naming the interfaces there are.
    """
    if interface is not None:
        if interface not in addresses:
            raise AddressError(
                f"this node has no interface {interface!r}; cluster.interface may be one of "
                f"{', '.join(sorted(addresses))}"
            )
        addresses = {interface: addresses[interface]}
    usable = [one for name in sorted(addresses) for one in addresses[name] if _is_usable(one)]
    for one in [*named, routed]:
        if one in usable:
            return one
    if usable:
        return min(usable, key=lambda one: ipaddress.ip_address(one).version)
    loopback = [one for found in addresses.values() for one in found if _is_loopback(one)]
    if interface is None and loopback:
        return min(loopback, key=lambda one: ipaddress.ip_address(one).version)
    raise AddressError(f"no address of this node can be reached from others: {addresses}")


def join(address: str, port: int) -> str:
    """`address:port`, with the brackets an IPv6 address needs."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def own_addresses() -> dict[str, list[str]]:
    """Addresses of this node by interface, IPv4 and IPv6, scope ids dropped."""
    families = (socket.AF_INET, socket.AF_INET6)
    return {
        name: [one.address.partition("%")[0] for one in found if one.family in families]
        for name, found in psutil.net_if_addrs().items()
    }


def named_addresses() -> list[str]:
    """What the host's own name stands for; empty where it stands for nothing."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return []
    return [str(entry[4][0]).partition("%")[0] for entry in found]


def routed_address(targets: Sequence[str] = OUTSIDE) -> str | None:
    """The address this node would use to reach the first reachable target; sends nothing."""
    for target in targets:
        family = socket.AF_INET6 if ":" in target else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return None


def wait_for(address: str, port: int, seconds: float) -> None:
    """Return once something listens there; raises AddressError after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            socket.create_connection((address, port), timeout=5).close()
            return
        except OSError:
            time.sleep(1)
    raise AddressError(
        f"nothing listens at {join(address, port)} after {seconds:g} s; is the network between the "
        "nodes open, and cluster.interface the right one?"
    )


def _is_loopback(text: str) -> bool:
    return ipaddress.ip_address(text).is_loopback


def _is_usable(text: str) -> bool:
    address = ipaddress.ip_address(text)
    return not (address.is_loopback or address.is_link_local or address.is_unspecified)


def main() -> int:
    """Print this node's address, or do what an option asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interface")
    parser.add_argument("--towards", help="the address by which this node reaches another")
    parser.add_argument("--wait", nargs=2, metavar=("ADDRESS", "PORT"))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--url", action="store_true", help="in the form a URL takes")
    parser.add_argument("--join", nargs=2, metavar=("ADDRESS", "PORT"))
    asked = parser.parse_args()
    try:
        if asked.join:
            print(join(asked.join[0], int(asked.join[1])))
        elif asked.wait:
            wait_for(asked.wait[0], int(asked.wait[1]), asked.seconds)
        elif asked.towards and not asked.interface:
            print(routed_address([asked.towards]) or asked.towards)
        else:
            found = (own_addresses(), named_addresses(), routed_address())
            address = choose(*found, interface=asked.interface)
            print(f"[{address}]" if asked.url and ":" in address else address)
    except AddressError as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
