"""Certificates of runs: their total against every bound, for any comparator."""

from driftline.certificates.audit import certify as certify
from driftline.certificates.bandit import BanditCertificate as BanditCertificate
from driftline.certificates.certificate import Certificate as Certificate
from driftline.certificates.committee_certificate import (
    CommitteeCertificate as CommitteeCertificate,
)
from driftline.certificates.hindsight import Hindsight as Hindsight
from driftline.certificates.hindsight import best_fixed as best_fixed
from driftline.certificates.hindsight import best_piecewise as best_piecewise
from driftline.certificates.hindsight import surrogate_losses as surrogate_losses
from driftline.certificates.replay import kind_of as kind_of
