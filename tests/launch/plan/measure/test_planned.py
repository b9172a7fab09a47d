"""From a recipe to the share of one GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from made import recipe_of  # replaced below

