"""Estimators for scikit-learn: streams in its pipelines, searches and scores."""

from driftline.estimators.classifier import DriftClassifier as DriftClassifier
from driftline.estimators.making import make_learner as make_learner
from driftline.estimators.multilabel import DriftMultilabelClassifier as DriftMultilabelClassifier
from driftline.estimators.ordinal import DriftOrdinalClassifier as DriftOrdinalClassifier
from driftline.estimators.ranker import DriftRanker as DriftRanker
from driftline.estimators.ranking_scores import RankingScores as RankingScores
from driftline.estimators.ranking_scores import ranking_scores as ranking_scores
from driftline.estimators.spans import Span as Span
from driftline.estimators.spans import SpanScores as SpanScores
from driftline.estimators.spans import span_scores as span_scores
from driftline.estimators.spans import spans as spans
from driftline.estimators.tagger import DriftTagger as DriftTagger
