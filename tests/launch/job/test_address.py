"""The address other nodes can reach, picked from what a node may have."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.job.address import AddressError, choose, join, own_addresses, wait_for

LO = {"lo": ["127.0.0.1", "::1"]}
ETH = {"eth0": ["10.0.0.7", "fe80::1"], "ib0": ["192.168.5.7"]}


@pytest.mark.parametrize(
    ("addresses", "named", "routed", "interface", "expected"),
    [
        (LO | ETH, ["10.0.0.7"], "192.168.5.7", None, "10.0.0.7"),
        (LO | ETH, ["127.0.1.1"], "192.168.5.7", None, "192.168.5.7"),
        (LO | ETH, ["127.0.1.1"], None, None, "10.0.0.7"),
        (LO | ETH, [], None, "ib0", "192.168.5.7"),
        (LO | ETH, ["10.0.0.7"], "10.0.0.7", "ib0", "192.168.5.7"),
        (LO | ETH, ["172.16.0.1"], "172.16.0.1", None, "10.0.0.7"),
        (LO | {"eth0": ["fe80::1", "2001:db8::7"]}, [], None, None, "2001:db8::7"),
        (LO | {"eth0": ["2001:db8::7", "10.0.0.7"]}, [], None, None, "10.0.0.7"),
        (LO | {"eth0": ["2001:db8::7"]}, ["2001:db8::7"], None, None, "2001:db8::7"),
        (LO, ["127.0.1.1"], None, None, "127.0.0.1"),
        ({"lo": ["::1"]}, [], None, None, "::1"),
    ],
)
def test_the_address_is_one_the_node_has(
    addresses: dict[str, list[str]],
    named: list[str],
    routed: str | None,
    interface: str | None,
    expected: str,
) -> None:
    assert choose(addresses, named, routed, interface) == expected


def test_an_interface_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(AddressError, match=r"no interface 'bond0'.*eth0, ib0, lo"):
        choose(LO | ETH, [], None, "bond0")


@pytest.mark.parametrize("addresses", [{}, {"eth0": []}, {"eth0": ["fe80::1"]}])
def test_a_node_without_an_address_is_an_error(addresses: dict[str, list[str]]) -> None:
    with pytest.raises(AddressError, match="no address of this node"):
        choose(addresses, [], None)


addresses = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)
nodes = st.dictionaries(st.sampled_from(["eth0", "eth1", "ib0"]), st.lists(addresses, max_size=3))


@given(nodes, st.lists(addresses, max_size=3), st.none() | addresses)
def test_what_is_chosen_is_always_the_nodes_own(
    node: dict[str, list[str]], named: list[str], routed: str | None
) -> None:
    node = LO | node
    chosen = choose(node, named, routed)
    assert chosen in [one for found in node.values() for one in found]
    assert choose(node, named, routed) == chosen


def test_ports_are_joined_with_brackets_where_needed() -> None:
    assert join("10.0.0.7", 20016) == "10.0.0.7:20016"
    assert join("2001:db8::7", 20016) == "[2001:db8::7]:20016"


def test_this_machine_has_an_address() -> None:
    assert choose(own_addresses(), [], None)


def test_waiting_ends_when_something_listens_and_says_so_when_nothing_does() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        wait_for("127.0.0.1", server.getsockname()[1], 10)
        port = server.getsockname()[1]
    with pytest.raises(AddressError, match=f"nothing listens at 127.0.0.1:{port} after 0.1 s"):
        wait_for("127.0.0.1", port, 0.1)


def test_the_script_gets_one_line_or_an_error_with_the_host() -> None:
    command = [sys.executable, "-m", "launch.job.address"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1
    done = subprocess.run([*command, "--interface", "no0"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{socket.gethostname()}: this node has no interface 'no0'")
