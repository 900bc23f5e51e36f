"""Streams that drift: inputs, labels, and where one is known, the comparator behind them."""

from driftline.streams.base import Stream as Stream
from driftline.streams.digit_triples import DigitTriples as DigitTriples
from driftline.streams.label_flips import LabelFlips as LabelFlips
from driftline.streams.logged import Logged as Logged
from driftline.streams.lower_bound import LowerBound as LowerBound
from driftline.streams.planted import Planted as Planted
from driftline.streams.planted_rankings import PlantedRankings as PlantedRankings
from driftline.streams.planted_sequences import PlantedSequences as PlantedSequences
from driftline.streams.ranked_queries import RankedQueries as RankedQueries
from driftline.streams.relabelled import Relabelled as Relabelled
from driftline.streams.rotation import Rotation as Rotation
from driftline.streams.words import OCRWords as OCRWords
