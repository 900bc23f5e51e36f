"""Laws that every codec of labels keeps."""

import json

import numpy as np
import pytest

import driftline as dl
from driftline.app.tables import Piece
from driftline.app.tables.labels import (
    CODECS,
    ClassCodec,
    GradeCodec,
    LevelCodec,
    TagCodec,
    codec_from_config,
)
from driftline.errors import InputError

#: A codec, rows of texts that it takes, and a text that it refuses.
CASES = [
    (ClassCodec(["y"], ["a", "b"]), [["a"], ["b"], [" a "]], "NA"),
    (ClassCodec(["y"], ["0", "1"], whole=True), [["0"], ["1.0"], ["1"]], ""),
    (LevelCodec(["y"], ["low", "high"]), [["low"], ["high"], ["low"]], "middle"),
    (TagCodec(["p", "q"]), [["1", "0"], ["true", "FALSE"], ["0", "0"]], "2"),
    (GradeCodec(["y"], highest=3), [["3"], ["0"], ["2.0"]], "4"),
]
every_codec = pytest.mark.parametrize("codec, rows, bad", CASES, ids=lambda case: str(case)[:30])


def encoded(codec, rows):
    piece = Piece("table.csv", rows, 2)
    return codec.encode(piece, {name: j for j, name in enumerate(codec.names)})


def test_every_kind_has_a_case():
    assert {codec.kind for codec, *_ in CASES} == set(CODECS)


@every_codec
def test_labels_are_those_of_the_task(codec, rows, bad):
    labels = encoded(codec, rows)
    assert len(labels) == len(rows)
    if codec.task.layout.ragged:
        codec.task.labels.check(labels)  # the grades of one query
    else:
        assert np.array_equal(np.ravel(codec.task.labels.check_all(labels)), np.ravel(labels))


@every_codec
def test_equal_labels_are_shown_as_equal_texts_which_mean_the_same_again(codec, rows, bad):
    labels = encoded(codec, rows)
    if codec.task.layout.ragged:
        return
    texts = codec.show(labels)
    assert [texts[i] == texts[j] for i in range(3) for j in range(3)] == [
        np.array_equal(labels[i], labels[j]) for i in range(3) for j in range(3)
    ]
    if len(codec.names) == 1:
        assert np.array_equal(encoded(codec, [[text] for text in texts]), labels)


@every_codec
def test_plain_data_makes_the_codec_again(codec, rows, bad):
    config = json.loads(json.dumps(codec.config()))
    again = codec_from_config(config)
    assert type(again) is type(codec) and again.config() == codec.config()
    assert np.array_equal(encoded(again, rows), encoded(codec, rows))


@every_codec
def test_files_with_the_fields_of_all_kinds_are_read(codec, rows, bad):
    """As they were written before each kind had a codec of its own."""
    all_fields = {"values": list(codec.values), "whole": False, "highest": 3} | codec.config()
    assert codec_from_config(all_fields).config() == codec.config()


@every_codec
def test_a_refused_row_is_named_and_leaves_no_new_label(codec, rows, bad):
    before = codec.config()
    new = [["never seen"], *rows] if codec.grows else rows
    last = [bad] * len(codec.names)
    with pytest.raises(
        InputError, match=rf"table.csv, line {len(new) + 2}, column {codec.names[0]}"
    ):
        encoded(codec, [*new, last])
    assert codec.config() == before
    assert len(encoded(codec, rows)) == len(rows)


def test_a_new_class_gets_the_next_number_and_makes_the_task_larger():
    codec = ClassCodec(["y"], ["a", "b"])
    assert encoded(codec, [["c"], ["a"], ["c"]]).tolist() == [2, 0, 2]
    assert codec.task.dim == 3 and codec.show([2]) == ["c"]


def test_unknown_kinds_are_refused():
    with pytest.raises(InputError, match="one of classes, tags, levels, ranking; not 'trees'"):
        codec_from_config({"kind": "trees"})


@pytest.mark.parametrize("make", [ClassCodec, LevelCodec], ids=["classes", "levels"])
def test_a_label_that_is_too_long_is_refused(make):
    codec = make(["y"], ["a", "b"])
    before = codec.config()
    with pytest.raises(InputError, match="line 3, column y: a label has 10,000 .* has 10,001: is"):
        encoded(codec, [["a"], ["x" * 10_001]])
    assert codec.config() == before


def test_the_longest_label_is_a_class():
    codec = ClassCodec(["y"])
    assert encoded(codec, [["x" * 10_000]]).tolist() == [0] and len(codec.values[0]) == 10_000


@pytest.mark.parametrize("options", [{}, {"task": "levels", "levels": ["a", "x" * 10_001]}])
def test_first_labels_that_are_too_long_are_refused(options):
    label = "a" if options else "x" * 10_001
    rows = [{"age": i, "y": label if i % 2 else "b"} for i in range(8)]
    with pytest.raises(InputError, match="a label has 10,000 characters at most, .* has 10,001"):
        dl.TableModel.new(rows, label="y", **options)


@every_codec
def test_labels_that_are_refused_are_told_in_short(codec, rows, bad):
    for text in ("x" * 9_000, "x" * 20_000):
        if codec.kind != "classes":
            with pytest.raises(InputError) as caught:
                encoded(codec, [[text] * len(codec.names)])
            assert len(str(caught.value)) < 500
    if codec.kind == "levels":
        many = LevelCodec(["y"], [f"{i} {'long' * 100}" for i in range(500)])
        with pytest.raises(InputError, match=r"none of the levels .*, \.\.\.:") as caught:
            encoded(many, [["none"]])
        assert len(str(caught.value)) < 1000


def test_tags_by_name_are_found_or_refused_in_short():
    codec = TagCodec([f"tag {i} {'long' * 50}" for i in range(300)])
    own = codec.names[7]
    assert sum(codec.cells([own])) == codec.cells([own])[7] == 1 == codec.cells({own: 1})[7]
    for wrong in ("x" * 9_000, 5, ["x"], {"x": 1}):
        with pytest.raises(InputError, match="is none of the tags") as caught:
            codec.cells([own, wrong])
        assert len(str(caught.value)) < 1000


def test_one_class_that_is_written_in_many_ways_is_known_all_the_same():
    codec = ClassCodec(["y"], ["a", "b"])
    for start in range(0, 10_000, 100):
        made = encoded(codec, [["a" + " " * i] for i in range(start, start + 100)] + [["b"]])
        assert made.tolist() == [0] * 100 + [1]
    assert len(codec._known) <= 2_000 and codec.values == ["a", "b"]
