"""The `longrl` command: names the subcommands and turns known errors into one message."""

from __future__ import annotations

import sys

import tyro

from launch.cli.check import check
from launch.cli.show import show
from launch.cli.train import train
from slime_ext.errors import ExplainedError

COMMANDS = {"train": train, "show": show, "check": check}


def main() -> None:
    """Entry point of the `longrl` command; exit code 2 for a mistake of the user's."""
    try:
        code = tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="longrl")
    except (ExplainedError, FileNotFoundError) as error:
        print(f"longrl: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
