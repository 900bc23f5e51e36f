"""The numbers of tickets that wait."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from driftline.learner.outstanding import Outstanding


@given(st.data())
def test_numbers_are_discarded_as_from_a_set(data):
    """Few of them one by one, many at once; those that are not there do not matter."""
    known = data.draw(st.sets(st.integers(0, 60)))
    gone = data.draw(st.lists(st.integers(0, 70), unique=True, max_size=40))
    waiting = Outstanding(np.array(sorted(known), dtype=np.int64))
    left = sorted(known - set(gone))
    assert waiting.without(np.array(gone, dtype=np.int64)).to_array().tolist() == left
    waiting.discard(gone)
    assert waiting.to_array().tolist() == left
