"""The lab task: a synthetic multi-hop retrieval task a tiny model learns in CPU-seconds."""
