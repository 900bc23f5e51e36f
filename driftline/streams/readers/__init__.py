"""Readers of data files: each returns plain arrays, and names the line that does not fit."""

from driftline.streams.readers.arff import Arff as Arff
from driftline.streams.readers.arff import read_arff as read_arff
from driftline.streams.readers.arff import read_mulan as read_mulan
from driftline.streams.readers.label_ranking import read_label_ranking as read_label_ranking
from driftline.streams.readers.ocr import Words as Words
from driftline.streams.readers.ocr import read_ocr as read_ocr
from driftline.streams.readers.svmlight import Ranking as Ranking
from driftline.streams.readers.svmlight import read_svmlight as read_svmlight
