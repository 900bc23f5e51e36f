"""Losses and the Polyak rate for PyTorch; needs the extra ``torch``."""

try:
    import torch as torch
except ImportError as error:
    raise ImportError(
        "driftline.integrations.torch needs PyTorch: pip install 'torch>=2.4'"
    ) from error

from driftline.integrations.torch.losses import CRFLoss as CRFLoss
from driftline.integrations.torch.losses import SurrogateLoss as SurrogateLoss
from driftline.integrations.torch.polyak import Polyak as Polyak
