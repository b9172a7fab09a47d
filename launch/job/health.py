"""Waiting until a service of the job answers.

One design choice: an answer below 400 is the only sign of health; a port that accepts connections
says nothing of a model server, which opens it minutes before it can serve.
"""

from __future__ import annotations

import argparse
import sys
import time

import httpx

from slime_ext.errors import ExplainedError


class NotHealthyError(ExplainedError):
    """The service did not answer in time."""


def wait_healthy(url: str, name: str, seconds: float, pause_s: float = 1.0) -> float:
    """Return once `url` answers with a status below 400; the seconds it took.

    No proxy is used. Raises NotHealthyError after `seconds`, with the last answer.
    """
    start, last = time.monotonic(), "nothing"
    with httpx.Client(trust_env=False, timeout=10) as client:
        while True:
            try:
                answer = client.get(url)
                if answer.status_code < httpx.codes.BAD_REQUEST:
                    return time.monotonic() - start
                last = f"status {answer.status_code}"
            except httpx.TransportError as error:
                last = str(error) or type(error).__name__
            if time.monotonic() - start >= seconds:
                raise NotHealthyError(
                    f"service {name} does not answer at {url} after {seconds:g} s ({last}); its "
                    "part of the log above says why. A slow start gets more time with "
                    "ready_timeout_s in its [[cluster.services]]"
                )
            time.sleep(pause_s)


def main() -> int:
    """Entry point of the script; exit code 2 where the service stays silent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--name", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    asked = parser.parse_args()
    try:
        took = wait_healthy(asked.url, asked.name, asked.seconds)
    except NotHealthyError as error:
        print(f"longrl: {error}", file=sys.stderr)
        return 2
    print(f"service {asked.name} answers after {took:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
