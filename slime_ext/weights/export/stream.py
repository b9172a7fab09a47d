"""A tensor's bytes for the exported file, a block of rows at a time.

One design choice: a block is assembled from every piece that overlaps it (tensor parallel ranks cut
rows or columns), converted and handed on, so the peak is a few blocks whatever the tensor.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from slime_ext.weights.export.chunks import ChunkReader
from slime_ext.weights.export.plan import ITEM_BYTES, PlannedTensor, Source
from slime_ext.weights.stored import Chunk

BLOCK_BYTES = 16 * 2**20


class TensorStream:
    """Reads the tensors of one checkpoint."""

    def __init__(self, reader: ChunkReader) -> None:
        self._reader = reader
        self._below: dict[tuple[str, int], dict[tuple[int, ...], list[Chunk]]] = {}

    def blocks(self, tensor: PlannedTensor) -> Iterator[memoryview]:
        """The bytes of a tensor, row-major, little-endian, in its planned dtype.

        Raises StoredError where the checkpoint is not what its index says.
        """
        source = tensor.source
        width = source.tensor.shape[len(source.lead) + 1 :]
        row = math.prod(width) * ITEM_BYTES[source.tensor.dtype]
        step = max(1, BLOCK_BYTES // row)
        for start, end in source.ranges:
            for first in range(start, end, step):
                block = self._block(source, first, min(first + step, end), row)
                yield _converted(block, source.tensor.dtype, tensor.dtype).data

    def _block(self, source: Source, first: int, last: int, row: int) -> NDArray[np.uint8]:
        """Rows [first, last) of the stored tensor, as bytes [rows, bytes of a row]."""
        axis = len(source.lead)
        item = ITEM_BYTES[source.tensor.dtype]
        block = np.empty((last - first, row), np.uint8)
        for chunk in self._pieces(source):
            top, height = chunk.offsets[axis], chunk.sizes[axis]
            start, end = max(first, top), min(last, top + height)
            if start >= end:
                continue
            lead = tuple(i - o for i, o in zip(source.lead, chunk.offsets, strict=False))
            data = self._reader.read(source.tensor, chunk, lead, start - top, end - top)
            if data.shape == block.shape:
                return data
            left = chunk.offsets[axis + 1] * item if len(chunk.offsets) > axis + 1 else 0
            block[start - first : end - first, left : left + data.shape[1]] = data
        return block

    def _pieces(self, source: Source) -> list[Chunk]:
        """The pieces below a layer and expert; a stacked tensor of experts has thousands."""
        axes = len(source.lead)
        key = (source.tensor.name, axes)
        if key not in self._below:
            below: dict[tuple[int, ...], list[Chunk]] = defaultdict(list)
            for chunk in source.tensor.chunks:
                boxes = zip(chunk.offsets[:axes], chunk.sizes[:axes], strict=True)
                for lead in itertools.product(*(range(at, at + size) for at, size in boxes)):
                    below[lead].append(chunk)
            self._below[key] = below
        return self._below[key][source.lead]


def _converted(block: NDArray[np.uint8], stored: str, wanted: str) -> NDArray[np.uint8]:
    if stored == wanted:
        return block.reshape(-1)
    import torch

    numbers = torch.from_numpy(block.reshape(-1)).view(getattr(torch, stored))
    return numbers.to(getattr(torch, wanted)).view(torch.uint8).numpy()
