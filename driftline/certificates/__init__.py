"""What a run can be held to: its total against every bound, for any comparator."""

from driftline.certificates.audit import certify as certify
from driftline.certificates.certificate import Certificate as Certificate
