"""Rules by which a committee makes one prediction of its members'."""

from driftline.committee.combine.base import Combine as Combine
from driftline.committee.combine.base import Made as Made
from driftline.committee.combine.first import First
from driftline.committee.combine.mix import Mix
from driftline.committee.combine.vote import Vote
from driftline.errors import InputError

#: All rules by name: a further one is a file and a place in this list.
RULES: dict[str, Combine] = {rule.name: rule for rule in (Vote(), Mix(), First())}


def rule_of(name: object) -> Combine:
    """Return a rule by its name, or refuse the name."""
    if isinstance(name, str) and (rule := RULES.get(name)) is not None:
        return rule
    raise InputError(f"combine must be one of {', '.join(map(repr, RULES))}, not {name!r:.80}")
