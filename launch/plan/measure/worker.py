"""The measuring process: a share as JSON on standard input, a JSON line a term on standard output.

One design choice: it is a process of its own, because malloc reads its settings at the start, and
because a process that runs out of memory must not take the report of what it had measured with it.
"""

from __future__ import annotations

import json
import sys

from launch.plan.measure.meter import GpuMeter, Meter, ProcessMeter
from launch.plan.measure.share import MeasureError, Share


def main() -> None:
    """Measure the share that standard input describes, on its `device`."""
    import torch

    from launch.plan.measure.phases import Phases, warm_up

    order = json.load(sys.stdin)
    share, device = Share(**order["share"]), torch.device(order["device"])
    meter: Meter
    if device.type == "cuda":
        _say(device=torch.cuda.get_device_name(device))
        meter = GpuMeter()
    else:
        meter = ProcessMeter()
    try:
        warm_up(share, device)
        Phases(share, meter, device, lambda term, size: _say(term=term, bytes=size)).run()
        if device.type == "cuda":
            _say(term="reserved", bytes=torch.cuda.max_memory_reserved())
    except MeasureError as error:
        _say(error=str(error))
    except (torch.cuda.OutOfMemoryError, MemoryError):
        _say(out_of_memory=True)


def _say(**record: str | int | bool) -> None:
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
