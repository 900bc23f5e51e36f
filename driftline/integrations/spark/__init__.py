"""A learner for every key on a Spark cluster, in tables and in streams; needs the extra ``spark``.

:func:`predictions` plays the rows of every key by a learner of its own, the one that
:class:`~driftline.Keyed` has for it, with the same bits. A table is played by ``applyInPandas``; a
stream by ``transformWithStateInPandas``, with learners and tickets in Spark's state store, so that
a query that is restarted from its checkpoint goes on bit for bit.
"""

from driftline.integrations.spark.frames import predictions
from driftline.keyed.events import learner_of

__all__ = ["learner_of", "predictions"]
