"""The classifier as people use it: the examples of the README, and every odd text and label they might bring."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import emoglot
from emoglot import DataError, EmotionClassifier, Model, ModelError, TrainingError, UsageError
from emoglot.evaluation.evaluate import evaluate_model
from emoglot.labels import SEMEVAL_LABELS
from tests.conftest import LABELS, QUICK, SENTENCES, make_dataset, train

# Sixteen sentences leave few to choose thresholds; the warning that says so has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:no row that chooses thresholds")

TEXTS = [text for text, _, _ in SENTENCES]
NAMES = [names for _, _, names in SENTENCES]


def fit(rows, texts=TEXTS, validation=None, config=QUICK, **options) -> Model:
    return EmotionClassifier("tiny", config=config, **options).fit(texts, rows, validation).model_


def test_predictions_are_names_and_scores(trained):
    (prediction,) = trained.predict(["I am so happy"])
    assert tuple(prediction.scores) == trained.labels == LABELS
    assert prediction.labels == tuple(
        name for name, score in prediction.scores.items() if score >= trained.thresholds[name]
    )
    assert not prediction.truncated


def test_predict_proba_is_float32_and_the_scores_of_predict(trained):
    scores = trained.predict_proba(TEXTS)
    assert scores.dtype == np.float32
    assert scores.shape == (len(TEXTS), len(LABELS))
    assert [list(prediction.scores.values()) for prediction in trained.predict(TEXTS)] == scores.tolist()


def test_company_and_order_do_not_change_a_score(trained):
    scores = trained.predict_proba(TEXTS)
    assert trained.predict_proba(TEXTS[::-1])[::-1] == pytest.approx(scores, abs=1e-6)
    assert np.concatenate([trained.predict_proba([text]) for text in TEXTS]) == pytest.approx(scores, abs=1e-6)


def test_names_and_arrays_train_the_same_model():
    array = make_dataset(1).targets.astype(float)
    by_name, by_array = fit(NAMES, labels=LABELS), fit(array, labels=LABELS)
    assert np.array_equal(by_name.predict_proba(TEXTS), by_array.predict_proba(TEXTS))


def test_labels_may_come_from_a_generator_or_a_column():
    column = np.empty(len(NAMES), dtype=object)
    column[:] = NAMES
    expected = fit(NAMES).predict_proba(TEXTS)
    for labels in ((names for names in NAMES), column):
        assert np.array_equal(fit(labels).predict_proba(TEXTS), expected)


def test_labels_are_those_used_in_training():
    assert fit(NAMES).labels == LABELS


def test_an_array_of_eleven_columns_means_the_eleven_labels():
    array = np.zeros((len(TEXTS), 11))
    array[np.arange(len(TEXTS)), np.arange(len(TEXTS)) % 11] = 1
    assert fit(array).labels == SEMEVAL_LABELS


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_knows_the_names_of_its_labels(library):
    module = pytest.importorskip(library)
    columns = {name: make_dataset(1).targets[:, LABELS.index(name)] for name in ("joy", "anger", "fear")}
    frame = module.DataFrame(columns)
    for labels in (None, ["anger", "fear", "joy"]):
        model = fit(frame, labels=labels, validation=([f"{text} now" for text in TEXTS], frame))
        counts = [part["positives"] for part in model.state.training["data"].values()]
        assert set(model.labels) == set(columns)
        for name, column in columns.items():
            assert counts[0][name] == column.sum()
    with pytest.raises(DataError, match="must have exactly the columns anger, joy, got joy, anger, fear"):
        fit(frame, labels=["anger", "joy"])


def test_labels_of_a_wrong_shape_are_told():
    with pytest.raises(DataError, match="must have one row per text, got the shape"):
        fit(np.zeros(len(TEXTS)))
    with pytest.raises(DataError, match=r"the names of its 3 columns: EmotionClassifier\(labels="):
        fit(np.zeros((len(TEXTS), 3)))
    truths = list(make_dataset(1).targets == 1)
    assert fit(truths, labels=LABELS).labels == LABELS


def test_what_would_give_its_names_is_no_list_of_texts(trained):
    pandas = pytest.importorskip("pandas")
    for texts in ({"a": "b"}, pandas.DataFrame({"text": ["a"]})):
        with pytest.raises(DataError, match="pass its column of texts"):
            trained.predict(texts)
    assert len(trained.predict(pandas.Series(["a", "b"]), pandas.Series(["en", None]))) == 2


def test_a_validation_set_is_used():
    model = fit(NAMES, validation=([f"{text} now" for text in TEXTS], NAMES))
    data = model.state.training["data"]
    assert data["training"]["rows"] == len(TEXTS)
    assert data["stopping"]["rows"] + data["thresholding"]["rows"] == len(TEXTS)


def test_without_a_validation_set_no_row_serves_twice(trained, dataset):
    parts = trained.state.training["data"]
    assert sum(part["rows"] for part in parts.values()) == len(dataset)
    assert all(part["rows"] > 0 for part in parts.values())


def test_nan_labels_are_unknown_and_train():
    array = make_dataset(1).targets.astype(float)
    array[::2, 0] = np.nan
    known = fit(array, labels=LABELS).state.training["data"]
    assert sum(part["known"]["anger"] for part in known.values()) == len(TEXTS) // 2


def test_different_label_sets_can_be_combined():
    ours = make_dataset(2)
    narrow = make_dataset(2).with_labels(["joy", "trust"])
    both = emoglot.concatenate([ours, narrow])
    with pytest.warns(UserWarning, match="no training row is labelled trust"):
        model = train("tiny", both, config=QUICK)
    assert model.labels == ("anger", "fear", "joy", "love", "sadness", "trust")
    assert model.thresholds["trust"] == np.inf
    assert not any("trust" in prediction.labels for prediction in model.predict(TEXTS))


def test_the_wide_channel_is_one_flag(dataset):
    plain = train("tiny", dataset, config=QUICK, wide=False)
    wide = train("tiny", dataset, config=QUICK, wide=True)
    assert plain.state.wide is None
    assert wide.state.wide is not None
    assert not np.allclose(plain.predict_proba(TEXTS), wide.predict_proba(TEXTS))


def test_single_label_gives_exactly_one():
    config = QUICK.override({"task": "single-label"})
    single = [next(iter(sorted(names)), "joy") for names in NAMES]
    model = fit([{name} for name in single], config=config)
    predictions = model.predict(TEXTS)
    assert all(prediction.labels == (max(prediction.scores, key=prediction.scores.get),) for prediction in predictions)
    assert model.predict([""])[0].labels == ()
    with pytest.raises(DataError, match="at most one label per row"):
        fit(NAMES, config=config)


def test_binary_is_one_column():
    array = make_dataset(1).targets[:, 2:3].astype(float)
    assert fit(array, labels=["joy"]).predict_proba(TEXTS).shape == (len(TEXTS), 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \t\n ",
        "😱😱😱",
        "👩‍👩‍👧‍👦",
        "\x00\x00",
        "null\x00byte",
        "\ud800 lone",
        "\udfff",
        "!!!",
        "&amp;",
        "a" * 1_000_000,
        "so happy " * 100_000,
        "\u202eright to left",
        "é" * 3000,
        "1234567890",
    ],
)
def test_odd_texts_have_an_answer(trained, text):
    (prediction,) = trained.predict([text])
    assert all(0 <= score <= 1 for score in prediction.scores.values())
    tokens = trained.explain(text)
    assert all(text[token.start : token.end] == token.token for token in tokens)
    if tokens:
        assert sum(token.weight for token in tokens) == pytest.approx(1, abs=1e-3)
    else:
        assert prediction.labels == ()
        assert prediction.scores == {}


@pytest.mark.parametrize("text", ["", "  ", "\x00"])
def test_nothing_said_is_nothing_felt(trained, text):
    assert trained.predict([text])[0].labels == ()
    assert trained.explain(text) == ()


def test_a_long_text_says_that_only_its_beginning_was_read(trained):
    long, short = trained.predict(["so happy " * 10_000, "so happy"])
    assert long.truncated
    assert not short.truncated


def test_texts_may_come_from_a_generator(trained):
    assert trained.predict(text for text in TEXTS) == trained.predict(TEXTS)
    assert fit(NAMES, (text for text in TEXTS)).labels == LABELS


@pytest.mark.parametrize("text", [None, 3, 2.5, b"bytes", ["nested"], float("nan")])
def test_what_is_no_text_is_refused_with_its_place(trained, text):
    for call in (trained.predict, trained.predict_proba):
        with pytest.raises(DataError, match=r"a text must be a string, got .* at index 1"):
            call(["fine", text])
    with pytest.raises(DataError, match="a text must be a string"):
        trained.explain(text)


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "got None: use ''"), (5, r"got 5: convert it with str\(\)"), (b"bytes", "got bytes: decode them first")],
)
def test_what_is_neither_a_text_nor_a_list_is_refused_with_a_way_out(trained, value, message):
    for call in (trained.predict, trained.predict_proba):
        with pytest.raises(DataError, match=message):
            call(value)


def test_one_string_is_one_text(trained):
    assert trained.predict("so happy") == trained.predict(["so happy"])[0]
    with pytest.raises(DataError, match="put it in a list"):
        trained.predict_proba("happy")
    with pytest.raises(DataError, match="one for each text, got 2 for 1 texts"):
        trained.predict("so happy", ["en", "de"])


def test_a_model_can_be_sent_to_another_process(trained):
    copy = pickle.loads(pickle.dumps(trained))
    assert np.array_equal(copy.predict_proba(TEXTS), trained.predict_proba(TEXTS))
    assert copy.predict(TEXTS) == trained.predict(TEXTS)


def test_a_model_says_what_it_is(trained):
    assert repr(trained) == f"Model({len(trained.labels)} labels, encoder 'tiny')"


def test_no_texts_no_predictions(trained):
    assert trained.predict([]) == []
    assert trained.predict_proba([]).shape == (0, len(LABELS))


@pytest.mark.parametrize("text", ["¡Qué miedo!", "@ana I'm sooooo happy!!! #SoHappy", "أنا خائف", "naïve cafe\u0301"])
def test_an_explanation_points_into_the_users_own_text(trained, text):
    tokens = trained.explain(text)
    assert [text[token.start : token.end] for token in tokens] == [token.token for token in tokens]
    assert sum(token.weight for token in tokens) == pytest.approx(1, abs=1e-5)
    starts = [token.start for token in tokens]
    assert starts == sorted(starts)


def test_the_words_are_found_where_they_stand(trained):
    words = {token.token for token in trained.explain("@ana I am sooooo happy")}
    assert {"@ana", "I", "am", "sooooo", "happy"} == words


@pytest.mark.parametrize(
    ("labels", "texts", "error", "rule"),
    [
        ([], [], DataError, "at least one label"),
        (np.zeros((0, 11)), [], DataError, "at least 2 different texts"),
        ([set()] * 16, TEXTS, DataError, "at least one label"),
        (np.zeros((16, 11)), TEXTS, TrainingError, "at least one training row must have a label"),
        (np.full((16, 11), np.nan), TEXTS, DataError, "at least 2 different texts"),
        ([{"joy"}], TEXTS, DataError, "16 texts and 1 rows"),
        (np.full((16, 11), "joy"), TEXTS, DataError, "must contain numbers"),
        ([[0, 1], [1]] * 8, TEXTS, DataError, "the names of its 2 columns"),
        (None, TEXTS, DataError, "one set of names per text, got None"),
        ("joy", TEXTS, DataError, "one set of names per text, got 'joy'"),
        (NAMES, None, DataError, "a list of strings, got None: use"),
        (np.zeros((16, 3)), TEXTS, DataError, "the names of its 3 columns"),
        (
            [{"joy"}] * 10,
            [" " * count for count in range(10)],
            TrainingError,
            "at least one training text must have a token",
        ),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(labels, texts, error, rule):
    with pytest.raises(error, match=rule):
        fit(labels, texts)


def test_a_label_outside_the_set_is_refused():
    with pytest.raises(DataError, match="'envy' in row 0 is not in the label set"):
        fit([{"envy"}] * 16, labels=LABELS)
    with pytest.raises(DataError, match="'envy' in row 0 is not in the label set"):
        fit(NAMES, validation=(TEXTS, [{"envy"}] * 16))


@pytest.mark.parametrize("validation", [TEXTS, (TEXTS,), {"texts": TEXTS}])
def test_a_validation_set_is_a_pair(validation):
    with pytest.raises(DataError, match=r"validation must be a pair \(texts, labels\)"):
        fit(NAMES, validation=validation)


def test_a_config_is_a_config():
    with pytest.raises(UsageError, match=r"config must be an emoglot.Config, got \{\}"):
        EmotionClassifier("tiny", config={}).fit(TEXTS, NAMES)
    with pytest.raises(DataError, match="a label set must be a list of names, got the string 'joy'"):
        EmotionClassifier("tiny", labels="joy").fit(TEXTS, NAMES)


def test_an_untrained_model_says_so():
    with pytest.raises(ModelError, match="not trained yet"):
        EmotionClassifier("tiny").predict(["hello"])


def test_evaluation_by_language_adds_up(trained, dataset):
    result = evaluate_model(trained, dataset)
    assert set(result.languages) == {"ar", "en", "es"}
    assert sum(metrics.rows for metrics in result.languages.values()) == result.overall.rows == len(dataset)
    weighted = sum(metrics.jaccard * metrics.rows for metrics in result.languages.values())
    assert result.overall.jaccard == pytest.approx(weighted / len(dataset))


def test_evaluation_needs_a_label_in_common(trained, dataset):
    with pytest.raises(DataError, match="at least one of the model's labels"):
        evaluate_model(trained, dataset.with_labels(["pride"]))


def test_it_trains_on_a_real_xlm_r(xlmr_folder, tmp_path):
    data = make_dataset(2)
    config = QUICK.override({"training.max_epochs": 2})
    model = train(str(xlmr_folder), data, config=config, cache=tmp_path / "cache")
    folder = model.save(tmp_path / "model")
    again = emoglot.load(folder)
    assert np.array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    tokens = again.explain("¡Qué miedo me da la noche!")
    assert {"¡", "!"} <= {token.token for token in tokens}
    assert tokens[-1].end == len("¡Qué miedo me da la noche!")
