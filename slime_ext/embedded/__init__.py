"""The embedded backend: trainer, engine and loop on one machine without a GPU."""

import os
import warnings

# megatron-core decorates functions with torch.compile at import; none of them is called here, and
# loading the compiler for them costs 1.3 CPU-seconds.
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
# It also warns of every GPU package that is absent.
warnings.filterwarnings(
    "ignore",
    message=".*(Apex|Transformer Engine|full scope is deprecated)",
    category=UserWarning,
    module=r"megatron\.core",
)
