"""Readers return what was written, and name the line where a file does not fit."""

import gzip

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

import driftline as dl
from driftline.readers import (
    read_arff,
    read_label_ranking,
    read_mulan,
    read_ocr,
    read_svmlight,
)


@pytest.fixture
def write(tmp_path):
    def put(content, name="data.txt", packed=False):
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
        return tmp_path / name

    return put


def refuses(read, path, words):
    with pytest.raises(dl.InputError, match=words) as caught:
        read(path)
    assert path.name in str(caught.value)


# -- ARFF

DENSE = """% made by hand
@RELATION 'a % relation'

@attribute size NUMERIC   % in metres
@Attribute\t'the weight'\tReal
@attribute "is it" {yes, 'not, yet', "a b"}
@ATTRIBUTE count integer
@attribute kind{'it\\'s','?', 50}

@DATA
% no row
1, -2.5e1, yes, 3, 50
0.5,0,'not, yet',1,'?'   % a row

 '7',\t8\t"a b" , 9, "it's"
1\t2\tyes\t3\t50
"""
DENSE_VALUES = [
    [1, -25, 0, 3, 2],
    [0.5, 0, 1, 1, 1],
    [7, 8, 2, 9, 0],
    [1, 2, 0, 3, 2],
]
HEAD = "@relation r\n@attribute a numeric\n@attribute b {x, y}\n@attribute c real\n@data\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_dense_arff(write, packed, ending):
    names, kinds, values = read_arff(write(DENSE.replace("\n", ending), packed=packed))
    assert names == ["size", "the weight", "is it", "count", "kind"]
    assert kinds == [None, None, ("yes", "not, yet", "a b"), None, ("it's", "?", "50")]
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, DENSE_VALUES)


def test_a_byte_order_mark_is_no_text(write):
    assert read_arff(write(b"\xef\xbb\xbf" + HEAD.encode() + b"1,x,2")).values.tolist() == [
        [1, 0, 2]
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_sparse_arff(write, packed):
    rows = "{2 5,0 1.5}\n% none\n{}\n{ 1 y , 2 0 } % zero\n{1 'y', 0\t-1}\n{1 x}\n{2 \"3\"}\n"
    values = read_arff(write(HEAD + rows, packed=packed)).values
    assert isinstance(values, csr_array) and values.dtype == np.float64
    assert values.has_canonical_format and values.nnz == 6
    expected = [[1.5, 0, 5], [0, 0, 0], [0, 1, 0], [-1, 1, 0], [0, 0, 0], [0, 0, 3]]
    np.testing.assert_array_equal(values.toarray(), expected)


def test_quoted_values_in_sparse_rows(write):
    head = "@attribute a {zero, 'a, b', \"} %\", '?'}\n@attribute n real\n@data\n"
    values = read_arff(write(head + "{0 'a, b', 1 2}\n{0 \"} %\"}\n{0 '?'}\n")).values
    np.testing.assert_array_equal(values.toarray(), [[1, 2], [2, 0], [3, 0]])


def test_dense_and_sparse_rows_say_the_same(write):
    values = np.random.default_rng(0).integers(0, 3, (40, 3)) * [0.25, 1, -1.0]
    values[:, 1] %= 2
    letter = "xy"
    dense = "\n".join(f"{a!r},{letter[int(b)]},{c!r}" for a, b, c in values.tolist())
    sparse = "\n".join(
        "{" + ",".join(f"{i} {v!r}" for i, v in enumerate([a, letter[int(b)], c]) if v) + "}"
        for a, b, c in values.tolist()
    ).replace("'", "")
    np.testing.assert_array_equal(read_arff(write(HEAD + dense)).values, values)
    np.testing.assert_array_equal(read_arff(write(HEAD + sparse)).values.toarray(), values)


@pytest.mark.parametrize(
    "row, words",
    [
        ("1,?,2", "line 7: a value is missing: fill it in, or leave the row out"),
        ("1,,2", "line 7: a value is missing"),
        ("1,x,", "line 7: a value is missing"),
        ("1,'x',", "line 7: a value is missing"),
        ("1,x", "line 7: expected 3 values, one per attribute, but saw 2"),
        ("1,x,2,{3}", "line 7: expected 3 values, one per attribute, but saw 4"),
        ("1,z,2", "line 7: b must be one of 'x, y', but is 'z'"),
        ("1,X,2", "line 7: b must be one of 'x, y', but is 'X'"),
        ("one,x,2", "line 7: a must be a finite number, but is 'one'"),
        ("1,x,nan", "line 7: c must be a finite number, but is 'nan'"),
        ("1,x,1e999", "line 7: c must be a finite number"),
        ("1_0,x,1", "line 7: a must be a finite number"),
        ("1,'x,2", 'line 7: a quote is not closed in "\'x,2"'),
        ("1 'x' 2", "line 7: expected values with commas between"),
        ("1,'x'y,2", "line 7: expected values with commas between"),
        ("{0 1}", "line 7: rows in {} and rows without are mixed"),
        ("1,x," + "9" * 400, "line 7: c must be a finite number, but is '9{40}'\\.\\.\\."),
    ],
)
def test_dense_rows_that_do_not_fit(write, row, words):
    refuses(read_arff, write(HEAD + "1,x,2\n" + row), words)


@pytest.mark.parametrize(
    "row, words",
    [
        ("{0 ?}", "line 8: a value is missing: fill it in"),
        ("{0 1, 1", "line 8: a row that begins with { must end with }, but ends '{0 1, 1'"),
        ("{0 1, 1}", "line 8: expected {index value, index value, ...}, but saw '{0 1, 1}'"),
        ("{0 1,}", "line 8: expected {index value"),
        ("{0 1 1 x}", "line 8: expected {index value"),
        ("{0, 1 'x', 2}", "line 8: expected {index value"),
        ("{0 1, 1 'x', 2}", "line 8: expected {index value"),
        ("{0 1}, {5}", "line 8: expected {index value"),
        ("{0 1, 0 2}", "line 8: an index occurs twice"),
        ("{3 1}", "line 8: the 3 attributes have indices below 3, saw 3"),
        ("{-1 1}", "line 8: an index must be a whole number, but is '-1'"),
        ("{1 z}", "line 8: b must be one of"),
        ("{2 inf}", "line 8: c must be a finite number"),
        ("{1 'y}", "line 8: a quote is not closed"),
        ("1,x,2", "line 8: rows in {} and rows without are mixed"),
    ],
)
def test_sparse_rows_that_do_not_fit(write, row, words):
    refuses(read_arff, write(HEAD + "{0 1}\n\n" + row + "\n"), words)


@pytest.mark.parametrize(
    "head, words",
    [
        ("@attribute a string", "line 2: attribute 'a' has the type 'string', expected numeric"),
        ("@attribute a date 'yyyy'", "line 2: attribute 'a' has the type \"date 'yyyy'\""),
        ("@attribute a relational", "line 2: attribute 'a' has the type 'relational'"),
        ("@attribute a", "line 2: attribute 'a' has the type ''"),
        ("@attribute a {x, y", "line 2: attribute 'a' has the type '{x, y'"),
        ("@attribute", "line 2: expected '@attribute name type' or @data, but saw '@attribute'"),
        ("@attribute a {}", "line 2: expected values with commas between, but saw '{}'"),
        ("@attribute a {x,,y}", "line 2: expected values with commas between"),
        ("@attribute a {x y}", "line 2: expected values with commas between"),
        ("@attribute a {x, x}", "line 2: a value is listed twice in '{x, x}'"),
        ("@attribute 'a real", "line 2: a quote is not closed"),
        ("@attribute a real\n@attribute 'a' real", "line 3: attribute 'a' is declared twice"),
        ("@inputs a", "line 2: expected '@attribute name type' or @data"),
        ("@data", "line 2: expected attributes before @data"),
        ("@attribute a real", "has no @data"),
        ("@attribute a real\n@data\n% nothing\n", "has no rows after @data"),
        ("", "has no @data"),
    ],
)
def test_headers_that_do_not_fit(write, head, words):
    refuses(read_arff, write("@relation r\n" + head), words)


def test_text_that_is_not_utf8(write):
    refuses(read_arff, write(b"@relation r\n% caf\xe9\n"), "line 2: expected text in UTF-8.*0xe9")


# -- Mulan

LABELED = """@relation r
@attribute zebra {0,1}
@attribute a numeric
@attribute 'my label' {1,0}
@attribute b {u,v}
@attribute plain numeric
@data
"""
XML = """<?xml version="1.0" encoding="utf-8"?>
<labels{}>
  <!-- two levels -->
  <label name="plain"><label name="my label"/></label>
  <label name="zebra"></label>
</labels>
"""


@pytest.mark.parametrize("space", ["", ' xmlns="http://mulan.sourceforge.net/labels"'])
@pytest.mark.parametrize("packed", [False, True])
def test_mulan(write, space, packed):
    xml = write(XML.format(space), "labels.xml", packed=packed)
    dense = write(LABELED + "1,2.5,0,v,0\n0,3,1,u,1\n", packed=packed)
    inputs, labels = read_mulan(dense, xml)
    assert inputs.dtype == np.float64 and labels.dtype == np.int64
    np.testing.assert_array_equal(inputs, [[2.5, 1], [3, 0]])
    np.testing.assert_array_equal(labels, [[0, 0, 1], [1, 1, 0]])
    # An absent nominal is the first one listed: for 'my label' this is 1.
    inputs, labels = read_mulan(write(LABELED + "{0 1,1 2.5,2 0,3 v}\n{1 3,4 1}\n"), xml)
    assert isinstance(inputs, csr_array)
    np.testing.assert_array_equal(inputs.toarray(), [[2.5, 1], [3, 0]])
    np.testing.assert_array_equal(labels, [[0, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize(
    "names, words",
    [
        (["plain", "gone"], "labels.xml lists 'gone', no attribute of"),
        (["plain", "plain"], "labels.xml lists 'plain' twice"),
        ([], "must list labels as <label name"),
        ([""], "must list labels as <label name"),
        (["b"], "label b must have values 0 and 1, but has \\('u', 'v'\\)"),
        (["a"], "label a must be 0 or 1, but is 2.5 in row 2 after @data"),
        (["zebra", "a", "my label", "b", "plain"], "all attributes of .* are labels"),
    ],
)
def test_labels_that_do_not_fit(write, names, words):
    arff = write(LABELED + "1,1,0,v,0\n0,2.5,1,u,1\n")
    rows = "".join(f'<label name="{name}"/>' for name in names)
    with pytest.raises(dl.InputError, match=words):
        read_mulan(arff, write(f"<labels>{rows}</labels>", "labels.xml"))


@pytest.mark.parametrize("xml", ["", "<labels>", "a,b", '<?xml version="1.0" encoding="x"?><a/>'])
def test_lists_of_labels_that_are_no_xml(write, xml):
    with pytest.raises(dl.InputError, match="labels.xml is no XML list of labels"):
        read_mulan(write(LABELED + "1,1,0,v,0\n"), write(xml, "labels.xml"))


# -- svmlight


@pytest.mark.parametrize("packed", [False, True])
def test_svmlight(write, packed):
    text = "# head\n2 qid:7 1:0.5 3:-1 # doc\n0 qid:7 3:2e0 2:1\n\n1 qid:3 2:0\n0 qid:9 \n"
    inputs, grades, starts = read_svmlight(write(text, packed=packed))
    assert isinstance(inputs, csr_array) and inputs.dtype == np.float64
    assert inputs.has_canonical_format and inputs.nnz == 4
    np.testing.assert_array_equal(inputs.toarray(), [[0.5, 0, -1], [0, 1, 2], [0] * 3, [0] * 3])
    assert grades.dtype == np.int64 and grades.tolist() == [2, 0, 1, 0]
    assert starts.dtype == np.int64 and starts.tolist() == [0, 2, 3, 4]


def test_indices_from_zero_and_from_one(write):
    assert read_svmlight(write("1 1:5 2:6\n")).inputs.toarray().tolist() == [[5, 6]]
    assert read_svmlight(write("1 2:6\n0 4:1")).inputs.shape == (2, 4)
    rows = read_svmlight(write("1 1:5 2:6\n0 0:7\n")).inputs
    assert rows.toarray().tolist() == [[0, 5, 6], [7, 0, 0]]


def test_grades_may_be_fractions(write):
    grades = read_svmlight(write("0.5 1:1\n-1 1:1\n")).grades
    assert grades.dtype == np.float64 and grades.tolist() == [0.5, -1]
    assert read_svmlight(write("1.0 1:1\n+1 1:1\n")).grades.dtype == np.int64


@pytest.mark.parametrize("packed", [False, True])
def test_queries_from_a_second_file(write, packed):
    path = write("1 1:1\n0 1:2\n2 1:3\n", packed=packed)
    assert read_svmlight(path).starts.tolist() == [0, 3]
    sizes = write("1\n 2\r\n\n", "data.query", packed=packed)
    assert read_svmlight(path, sizes).starts.tolist() == [0, 1, 3]
    both = write("1 qid:1 1:1\n0 qid:2 1:2\n2 qid:2 1:3\n")
    assert read_svmlight(both, sizes).starts.tolist() == [0, 1, 3]


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_as_scikit_learn_writes_it(tmp_path, first):
    generator = np.random.default_rng(0)
    values = generator.standard_normal((30, 8)) * (generator.random((30, 8)) < 0.5)
    values[0, 0] = 1.0
    grades, queries = generator.integers(0, 5, 30), np.arange(30) // 4
    path = tmp_path / "data"
    dump_svmlight_file(values, grades, str(path), zero_based=not first, query_id=queries)
    ranking = read_svmlight(path)
    np.testing.assert_allclose(ranking.inputs.toarray(), values)
    np.testing.assert_array_equal(ranking.grades, grades)
    np.testing.assert_array_equal(ranking.starts, [*range(0, 30, 4), 30])


@pytest.mark.parametrize(
    "row, words",
    [
        ("1 qid:1 2:", "line 3: expected index:value, but saw '2:'"),
        ("1 qid:1 2", "line 3: expected index:value, but saw '2'"),
        ("1 qid:1 :2", "line 3: expected index:value, but saw ':2'"),
        ("1 qid:1 2:x", "line 3: the value at index 2 must be a finite number, but is 'x'"),
        ("1 qid:1 2:3:4", "line 3: the value at index 2 must be a finite number, but is '3:4'"),
        ("1 qid:1 2:nan", "line 3: the value at index 2 must be a finite number, but is 'nan'"),
        ("1 qid:1 2:-inf", "line 3: the value at index 2 must be a finite number"),
        ("1 qid:1 x:3", "line 3: an index must be a whole number, but is 'x'"),
        ("1 qid:1 -1:3", "line 3: an index must be a whole number, but is '-1'"),
        ("1 qid:1 5:3 2:1 5:3", "line 3: index 5 occurs twice"),
        ("1 qid:1 2:0 2:0", "line 3: index 2 occurs twice"),
        ("1 qid:1 2:1 qid:1", "line 3: an index must be a whole number, but is 'qid'"),
        ("qid:1 2:1", "line 3: expected a grade first, but saw 'qid:1'"),
        ("2:1", "line 3: expected a grade first, but saw '2:1'"),
        ("nan qid:1 2:1", "line 3: a grade must be a finite number, but is 'nan'"),
        ("1,2 qid:1 2:1", "line 3: a grade must be a finite number, but is '1,2'"),
        ("1 qid: 2:1", "line 3: qid must be a whole number, but is ''"),
        ("1 2:1", "line 3: some lines have a qid and some have none"),
        ("1 qid:2 2:1\n1 qid:1 2:1", "line 4: qid 1 comes back"),
    ],
)
def test_svmlight_rows_that_do_not_fit(write, row, words):
    refuses(read_svmlight, write("0 qid:1 1:1\n\n" + row + "\n0 qid:1 1:1\n"), words)


def test_svmlight_files_that_do_not_fit(write):
    refuses(read_svmlight, write("0 1:1\n1 qid:1 2:1\n"), "line 2: some lines have a qid")
    refuses(read_svmlight, write("# nothing\n"), "has no rows")
    refuses(read_svmlight, write("1\n0 # nothing\n"), "has no index:value in any row")


@pytest.mark.parametrize(
    "sizes, words",
    [
        ("1\n1\n", "data.query has 2 queries of 2 rows, but .* has 3"),
        ("", "data.query has 0 queries of 0 rows, but .* has 3"),
        ("1\n\nx\n", "data.query, line 3: a query size must be a whole number, but is 'x'"),
        ("-1\n4\n", "data.query, line 1: a query size must be a whole number, but is '-1'"),
        ("3\n0\n", "data.query, line 2: a query size must be at least 1, but is 0"),
        ("2\n1\n", "data.query and the qids of .* do not say the same queries"),
    ],
)
def test_query_sizes_that_do_not_fit(write, sizes, words):
    path = write("1 qid:1 1:1\n0 qid:2 1:2\n2 qid:2 1:3\n")
    query_path = write(sizes, "data.query")
    with pytest.raises(dl.InputError, match=words):
        read_svmlight(path, query_path)


# -- OCR letters


def cell(items, across=True):
    cells = np.empty((1, len(items)) if across else (len(items), 1), dtype=object)
    for i, item in enumerate(items):
        cells.flat[i] = item
    return cells


def word(codes, fold=3, **changes):
    images = [np.random.default_rng(code).integers(0, 2, (16, 8)) for code in codes]
    entry = {"fold": fold, "pixels": cell(images), "word": np.array([codes], np.uint8)}
    return entry | changes


def save(path, entries, **options):
    savemat(path, {"dataset": entries, "other": 1.0}, **options)
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("form", ["cells", "structs"])
def test_ocr(tmp_path, form, compressed):
    entries = [word([14, 12, 0]), word([25], fold=0), word([3, 4], fold=9)]
    if form == "cells":
        dataset = cell(entries, across=False)
    else:
        dataset = np.empty(3, dtype=[(name, object) for name in entries[0]])
        for i, entry in enumerate(entries):
            dataset[i] = tuple(entry.values())
    path = save(tmp_path / "ocr", dataset, do_compression=compressed, appendmat=False)
    pixels, letters, starts, folds = read_ocr(path)
    assert pixels.dtype == np.float64 and pixels.shape == (6, 128)
    images = [image for entry in entries for image in entry["pixels"].flat]
    np.testing.assert_array_equal(pixels.reshape(6, 16, 8), images)
    assert [a.dtype for a in (letters, starts, folds)] == [np.int64] * 3
    assert letters.tolist() == [14, 12, 0, 25, 3, 4]
    assert starts.tolist() == [0, 3, 4, 6] and folds.tolist() == [3, 0, 9]


@pytest.mark.parametrize(
    "entry, words",
    [
        (
            {"fold": 1, "word": np.array([1])},
            "expected a struct with fold, pixels and word, .*fold",
        ),
        (np.zeros((2, 2)), "expected a struct with fold, pixels and word, but saw an array"),
        ("ommanding", "expected a struct with fold, pixels and word"),
        (word([1, 2], fold=[1, 2]), "fold must be one whole number, but is an array"),
        (word([1, 2], fold=np.nan), "fold must be one whole number"),
        (word([1, 2], fold=np.inf), "fold must be one whole number"),
        (word([1, 2], fold="x"), "fold must be one whole number"),
        (word([1, 26]), "word must be codes from 0 to 25, but is .*26"),
        (word([1], word=np.array([-1])), "word must be codes from 0 to 25"),
        (word([1], word=np.array([0.5])), "word must be codes from 0 to 25"),
        (word([1], word="b"), "word must be codes from 0 to 25"),
        (word([1], pixels=np.zeros((16, 8))), "pixels must be a cell per letter"),
        (word([1, 2], pixels=cell([np.zeros((16, 8))])), "saw 1 images and 2 letters"),
        (word([], pixels=cell([])), "saw 0 images and 0 letters"),
        (word([1], pixels=cell([np.zeros((8, 16))])), "must be 16 by 8, but is .*8 by 16"),
        (word([1], pixels=cell([np.full((16, 8), np.nan)])), "an image must be 16 by 8"),
        (word([1], pixels=cell([np.full((16, 8), 255)])), "pixels must be 0 or 1, .*255 to 255"),
    ],
)
def test_words_that_do_not_fit(tmp_path, entry, words):
    path = save(tmp_path / "ocr.mat", cell([word([1, 2]), entry, word([3])]))
    refuses(read_ocr, path, "word 2 of 3: .*" + words)


def test_matlab_files_that_do_not_fit(tmp_path, write):
    for content in ({"letters": 1.0}, {"dataset": cell([])}):
        savemat(tmp_path / "ocr.mat", content)
        refuses(read_ocr, tmp_path / "ocr.mat", "must have a variable 'dataset'")
    whole = save(tmp_path / "ocr.mat", cell([word([1, 2])]), do_compression=True).read_bytes()
    for cut in (0, 3, 60, 127, 130, 150, len(whole) // 2, len(whole) - 1):
        refuses(
            read_ocr, write(whole[:cut], "ocr.mat"), "is no MATLAB file of version 5, or damaged"
        )
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    refuses(
        read_ocr, write(bytes(damaged), "ocr.mat"), "is no MATLAB file of version 5, or damaged"
    )
    refuses(read_ocr, write(b"a text" * 100, "ocr.mat"), "ocr.mat")
    refuses(read_ocr, write(b"\x89HDF\r\n\x1a\n".ljust(600, b"\0"), "ocr.mat"), "ocr.mat")


# -- label rankings


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_label_rankings(write, packed, ending):
    text = 'A1,"A 2",ranking\n0.5,-1,L2>L10>L1\n\n1e1, 2 ,"L1 > L2 > L10"\n'
    inputs, ranks, items = read_label_ranking(write(text.replace("\n", ending), packed=packed))
    assert items == ["L1", "L2", "L10"]
    assert inputs.dtype == np.float64 and ranks.dtype == np.int64
    np.testing.assert_array_equal(inputs, [[0.5, -1], [10, 2]])
    np.testing.assert_array_equal(ranks, [[2, 0, 1], [0, 1, 2]])


def test_item_names_of_all_kinds_are_sorted(write):
    text = "x,ranking\n1,b>L>a10>3>a9>L1b>a09>L1\n"
    items = read_label_ranking(write(text))[2]
    assert items == ["3", "L", "L1", "L1b", "a09", "a9", "a10", "b"]


@pytest.mark.parametrize(
    "row, words",
    [
        ("1,2,a>b", "line 3: expected a ranking of 'a, b, c' as in the first row, but saw 'a>b'"),
        ("1,2,a>b>d", "line 3: expected a ranking of 'a, b, c' as in the first row"),
        ("1,2,a>b>c>d", "line 3: expected a ranking of 'a, b, c' as in the first row"),
        ("1,2,a>b>b", "line 3: an item is repeated in 'a>b>b'"),
        ("1,2,a>>b", "line 3: expected a ranking such as a>b, saw 'a>>b'"),
        ("1,2,a", "line 3: expected a ranking such as a>b, saw 'a'"),
        ("1,2,", "line 3: expected a ranking such as a>b, saw ''"),
        ("1,a>b>c", "line 3: expected 3 columns, but saw 2"),
        ("1,2,3,a>b>c", "line 3: expected 3 columns, but saw 4"),
        ("1,x,a>b>c", "line 3: second must be a finite number, but is 'x'"),
        (",2,a>b>c", "line 3: first must be a finite number, but is ''"),
        ("1,inf,a>b>c", "line 3: second must be a finite number, but is 'inf'"),
        ('1,2,"a>b>c', "line 4: expected comma-separated values"),
    ],
)
def test_label_rankings_that_do_not_fit(write, row, words):
    path = write(f"first,second,ranking\n1,2,c>a>b\n{row}\n")
    refuses(read_label_ranking, path, words)


def test_label_ranking_files_that_do_not_fit(write):
    refuses(read_label_ranking, write("1,2,a>b\n1,2,b>a\n"), "line 1: expected a header")
    refuses(read_label_ranking, write("ranking\na>b\n"), "line 1: expected a header")
    refuses(read_label_ranking, write("x,ranking\n"), "has no rows")
    refuses(read_label_ranking, write(""), "has no rows")


# -- all of them


@pytest.mark.parametrize(
    "read, text",
    [
        (read_arff, DENSE),
        (read_svmlight, "1 1:1\n0 1:2\n"),
        (read_label_ranking, "x,ranking\n1,a>b\n"),
    ],
)
def test_truncated_and_damaged_gzip_files(write, read, text):
    whole = gzip.compress(text.encode())
    for cut in (2, 5, 12, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        refuses(read, write(whole[:cut]), "is truncated or damaged")
    damaged = bytearray(whole)
    damaged[-6] ^= 1
    refuses(read, write(bytes(damaged)), "is truncated or damaged")
    refuses(read, write(whole + b"more"), "is truncated or damaged")


@pytest.mark.parametrize("read", [read_arff, read_svmlight, read_ocr, read_label_ranking])
def test_a_missing_file_stays_a_missing_file(tmp_path, read):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone")
