"""From scores to predictions, randomised or deterministic."""

from driftline.decoders.abstain import Abstain as Abstain
from driftline.decoders.answer import Answer as Answer
from driftline.decoders.argmax import Argmax as Argmax
from driftline.decoders.base import Decoder as Decoder
from driftline.decoders.convolutional import Convolutional as Convolutional
from driftline.decoders.coordinatewise import Coordinatewise as Coordinatewise
from driftline.decoders.default import default_decoder as default_decoder
from driftline.decoders.exploring import Exploring as Exploring
from driftline.decoders.gap_optimal import GapOptimal as GapOptimal
from driftline.decoders.lazy import Lazy as Lazy
from driftline.decoders.marginal import Marginal as Marginal
from driftline.decoders.nearest_vertex import NearestVertex as NearestVertex
from driftline.decoders.step_optimal import StepOptimal as StepOptimal
from driftline.decoders.uniform_mix import UniformMix as UniformMix
