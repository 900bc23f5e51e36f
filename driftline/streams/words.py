"""Handwritten words whose letters are relabelled at every flip."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from driftline.errors import InputError
from driftline.readers import read_ocr
from driftline.streams.base import Stream, segment_starts
from driftline.tasks import Sequence

__all__ = ["OCRWords"]


class OCRWords(Stream):
    """The OCR letters of Taskar et al. as words in random order; a flip relabels all letters.

    Inputs are lists of arrays, one row of pixels per letter, scaled to norm 1. The file
    ``ocr_letters/ocr.mat`` is read from the folder that ``DRIFTLINE_DATA`` names, or ``path``
    is given.
    """

    def __init__(
        self,
        words: int | None = None,
        flips: int = 0,
        seed: int | None = 0,
        path: str | Path | None = None,
        transitions: bool = True,
    ):
        if path is None:
            base = os.environ.get("DRIFTLINE_DATA")
            if not base:
                raise InputError("no OCR file is known: set DRIFTLINE_DATA, or give its path")
            path = Path(base) / "ocr_letters" / "ocr.mat"
        data = read_ocr(path)
        generator = np.random.default_rng(seed)
        picked = generator.permutation(len(data.starts) - 1)[:words]
        norms = np.linalg.norm(data.pixels, axis=1, keepdims=True)
        pixels = data.pixels / np.where(norms > 0.0, norms, 1.0)
        self.task = Sequence(26, transitions)
        self.starts = segment_starts(len(picked), flips)
        spans = [slice(data.starts[w], data.starts[w + 1]) for w in picked]
        self.inputs = [pixels[span] for span in spans]
        segment = np.searchsorted(self.starts, np.arange(len(picked)), side="right") - 1
        names = [np.arange(26), *(generator.permutation(26) for _ in range(flips))]
        letters = (data.letters[span] for span in spans)
        self.labels = [names[s][word] for s, word in zip(segment, letters, strict=True)]
