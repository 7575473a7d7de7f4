"""The scikit-learn estimator keeps scikit-learn's contract."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from emoglot import Config, EmotionClassifier, Model, ModelError
from emoglot.classifier import BUNDLED_NAME
from emoglot.data.memory import to_dataset
from emoglot.evaluation.metrics import evaluate
from emoglot.labels import UNKNOWN
from tests.conftest import QUICK, SENTENCES

REPEATS = 6
TEXTS = [f"{text} {number}" for number in range(REPEATS) for text, _, _ in SENTENCES]
SETS = [labels for _, _, labels in SENTENCES] * REPEATS
LABELS = tuple(sorted(set().union(*SETS)))
ARRAY = np.array([[int(name in row) for name in LABELS] for row in SETS])
NAMES = [min(row) if row else "joy" for row in SETS]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> EmotionClassifier:
    cache = tmp_path_factory.mktemp("cache")
    return EmotionClassifier("tiny", labels=LABELS, config=QUICK, cache=cache).fit(TEXTS, ARRAY)


def test_making_one_only_stores_its_arguments():
    """Even those that make no sense: scikit-learn sets them one by one."""
    classifier = EmotionClassifier("no such encoder", quantize="int3", config=QUICK)
    assert clone(classifier).get_params() == classifier.get_params()
    assert classifier.set_params(encoder="tiny").get_params()["encoder"] == "tiny"
    assert EmotionClassifier().encoder == BUNDLED_NAME
    assert is_classifier(classifier)


def test_it_is_fitted_after_fit_only(fitted):
    check_is_fitted(fitted)
    fresh = clone(fitted)
    assert not hasattr(fresh, "model_")
    with pytest.raises(ModelError, match="not trained yet"):
        fresh.predict(TEXTS)


def test_predictions_are_those_of_the_model(fitted):
    assert isinstance(fitted.model_, Model)
    assert tuple(fitted.classes_) == fitted.model_.labels == LABELS
    given = [set(prediction.labels) for prediction in fitted.model_.predict(TEXTS)]
    assert [set(fitted.classes_[row == 1]) for row in fitted.predict(TEXTS)] == given
    assert np.array_equal(fitted.predict_proba(TEXTS), fitted.model_.predict_proba(TEXTS))


def test_the_score_is_macro_f1_however_labels_are_given(fitted):
    wanted = evaluate(ARRAY.astype(np.int8), fitted.predict(TEXTS) == 1, LABELS).macro_f1
    assert fitted.score(TEXTS, ARRAY) == fitted.score(TEXTS, SETS) == wanted > 0


def test_one_name_for_each_text_is_a_single_label_task(tmp_path):
    assert EmotionClassifier()._settings(NAMES) == Config(task="single-label")
    config = QUICK.override({"task": "single-label"})
    classifier = EmotionClassifier("tiny", config=config, cache=tmp_path).fit(TEXTS, NAMES)
    assert set(classifier.predict(TEXTS)) <= set(NAMES)
    assert list(classifier.predict(TEXTS)) == list(classifier.classes_[classifier.predict_proba(TEXTS).argmax(axis=1)])
    assert classifier.predict_proba([*TEXTS, ""]).sum(axis=1) == pytest.approx([1] * len(TEXTS) + [0])
    for name in ("roc_auc_ovr", "neg_log_loss"):  # scikit-learn's own, which need probabilities of one label per text
        assert np.isfinite(get_scorer(name)(classifier, TEXTS, NAMES))


def test_nullable_columns_may_lack_labels():
    frame = pd.DataFrame({"joy": pd.array([1, None], "Int64"), "fear": pd.array([None, True], "boolean")})
    assert to_dataset(["a", "b"], frame, ("joy", "fear")).targets.tolist() == [[1, UNKNOWN], [UNKNOWN, 1]]


def test_settings_may_be_those_of_numpy():
    """As those of a search over an array of settings."""
    config = EmotionClassifier(wide=np.True_, fine_tune=np.True_)._settings(SETS)
    assert json.loads(json.dumps(config.to_dict())) == config.to_dict()
    assert config.wide.enabled


def test_a_pickled_one_predicts_the_same(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")  # folds are small
def test_it_works_in_a_pipeline_in_cross_validation_and_in_a_search(tmp_path):
    classifier = EmotionClassifier("tiny", labels=LABELS, config=QUICK, cache=tmp_path)
    pipeline = Pipeline(
        [("upper", FunctionTransformer(lambda texts: [text.upper() for text in texts])), ("emotions", classifier)]
    )
    scores = cross_val_score(pipeline, TEXTS, ARRAY, cv=3)
    assert scores.shape == (3,)
    assert ((scores >= 0) & (scores <= 1)).all()
    search = GridSearchCV(classifier, {"wide": [True, False]}, cv=2).fit(TEXTS, ARRAY)
    assert search.best_params_["wide"] in (True, False)
    assert search.predict(TEXTS).shape == ARRAY.shape


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_valid_tag_types,
    ],
    ids=lambda check: check.__name__,
)
def test_the_checks_of_scikit_learn_that_need_no_array_of_numbers(check):
    check("EmotionClassifier", EmotionClassifier("tiny"))
