"""Readers of data files: each returns plain arrays; errors name the line."""

from driftline.readers.arff import Arff as Arff
from driftline.readers.arff import read_arff as read_arff
from driftline.readers.arff import read_mulan as read_mulan
from driftline.readers.label_ranking import read_label_ranking as read_label_ranking
from driftline.readers.ocr import Words as Words
from driftline.readers.ocr import read_ocr as read_ocr
from driftline.readers.svmlight import Ranking as Ranking
from driftline.readers.svmlight import read_svmlight as read_svmlight
