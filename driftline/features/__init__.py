"""Maps from inputs to inputs: rows brought to one scale as they come."""

from driftline.features.standardiser import Standardiser as Standardiser
