"""Codecs: what labels look like in a table, and what a task takes in their place.

A codec of another kind of label is a file here, and a line in ``CODECS``.
"""

from driftline.app.tables.labels.classes import ClassCodec as ClassCodec
from driftline.app.tables.labels.codec import LabelCodec as LabelCodec
from driftline.app.tables.labels.codecs import CODECS as CODECS
from driftline.app.tables.labels.codecs import codec_from_config as codec_from_config
from driftline.app.tables.labels.codecs import guess_codec as guess_codec
from driftline.app.tables.labels.grades import GradeCodec as GradeCodec
from driftline.app.tables.labels.levels import LevelCodec as LevelCodec
from driftline.app.tables.labels.tags import TagCodec as TagCodec
