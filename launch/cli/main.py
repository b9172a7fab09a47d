"""The `longrl` command: names the subcommands and turns known errors into one message."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable

import tyro

from launch.cli.bundle import bundle_run
from launch.cli.cancel import cancel_run
from launch.cli.check import check
from launch.cli.eval import evaluate
from launch.cli.export import export
from launch.cli.import_model import import_model
from launch.cli.import_script import import_script
from launch.cli.judge_check import judge_check
from launch.cli.logs import logs
from launch.cli.plan import plan
from launch.cli.prepare import prepare
from launch.cli.serve_judge import serve_judge
from launch.cli.show import show
from launch.cli.status import status
from launch.cli.submit import submit_run
from launch.cli.sync import sync
from launch.cli.train import train
from launch.cli.watch import watch
from slime_ext.errors import ExplainedError

COMMANDS: dict[str, Callable[..., int]] = {
    "train": train,
    "submit": submit_run,
    "status": status,
    "watch": watch,
    "logs": logs,
    "cancel": cancel_run,
    "bundle": bundle_run,
    "sync": sync,
    "show": show,
    "check": check,
    "plan": plan,
    "prepare": prepare,
    "import": import_model,
    "import-script": import_script,
    "eval": evaluate,
    "export": export,
    "serve-judge": serve_judge,
    "judge-check": judge_check,
}

NO_FAULT_OF_OURS = {
    errno.ENOSPC: "free space and give the same command: a run goes on from its newest checkpoint",
    errno.EDQUOT: "free space and give the same command: a run goes on from its newest checkpoint",
    errno.EACCES: "choose a folder you may write to, e.g. with --runs",
    errno.EROFS: "choose a folder you may write to, e.g. with --runs",
}
"""What to do where the machine refuses a file."""


def main() -> None:
    """Entry point of the `longrl` command; exit code 2 for a mistake of the user's."""
    try:
        code = tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="longrl")
    except (ExplainedError, FileNotFoundError) as error:
        print(f"longrl: {error}", file=sys.stderr)
        code = 2
    except OSError as error:
        if error.errno not in NO_FAULT_OF_OURS:
            raise
        print(f"longrl: {error}; {NO_FAULT_OF_OURS[error.errno]}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
