"""Imported by the process that those of tests are forked from: what most of them need, torch first of all.

torch's optimizers import `torch._dynamo` when constructed; that takes four fifths of the time of a small training.
"""

import gc

import tests.pipeline.command
import torch._dynamo

import bertwright.cli.stages
import bertwright.corpus.run
import bertwright.examples.run
import bertwright.train.engine.ddp
import bertwright.train.run

__all__ = ["bertwright", "tests", "torch"]

# Else each of the hundreds of processes would search all of it for garbage, a quarter of a second at a time, and copy
# the pages that it is in.
gc.collect()
gc.freeze()
