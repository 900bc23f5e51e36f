"""Surrogate losses: convex in the scores, minimised by the learner's gradient steps."""

from driftline.losses.base import Loss as Loss
from driftline.losses.convolutional import (
    ConvolutionalFenchelYoung as ConvolutionalFenchelYoung,
)
from driftline.losses.crf import CRF as CRF
from driftline.losses.fenchel_young import FenchelYoung as FenchelYoung
from driftline.losses.fenchel_young import SparseMAP as SparseMAP
from driftline.losses.hinge import Hinge as Hinge
from driftline.losses.logistic import Logistic as Logistic
from driftline.losses.pairwise import PairwiseLogistic as PairwiseLogistic
from driftline.losses.scaled import Scaled as Scaled
from driftline.losses.smooth_hinge import SmoothHinge as SmoothHinge
