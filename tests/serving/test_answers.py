"""What the service answers over a real socket, with a tiny model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import emoglot
from tests.service import TEXTS, results_of, running


def test_answers_are_those_of_the_local_model(service, local):
    response = service.ask("/v1/predict", {"texts": TEXTS, "explain": True})
    assert response.json()["model"] == {"name": "tiny-model", "version": emoglot.__version__}
    for text, expected, result in zip(TEXTS, local.predict(TEXTS), results_of(response), strict=True):
        assert tuple(result["labels"]) == expected.labels
        assert result["scores"] == pytest.approx(expected.scores, abs=1e-6)
        assert (result["truncated"], result["unreadable"]) == (expected.truncated, expected.unreadable)
        tokens = [emoglot.TokenWeight(**token) for token in result["tokens"]]
        assert [(token.token, token.start, token.end) for token in tokens] == [
            (token.token, token.start, token.end) for token in local.explain(text)
        ]


def test_one_text_has_one_result_without_tokens(service):
    (result,) = results_of(service.ask("/v1/predict", {"text": TEXTS[0]}))
    assert set(result) == {"labels", "scores", "sentiment", "language", "truncated", "unreadable"}


def test_a_precision_can_be_asked_for(service, local):
    for wanted in ({"precision": 0.9}, {"recall": 1.0}):
        response = service.ask("/v1/predict", {"texts": TEXTS, **wanted})
        assert [tuple(result["labels"]) for result in results_of(response)] == [
            prediction.labels for prediction in local.predict(TEXTS, **wanted)
        ]
        assert response.json()["never_given"] == local.strictness.never_given(
            local.labels, wanted.get("precision"), wanted.get("recall")
        )


def test_thresholds_are_told_with_an_explanation(service, local):
    """Those that were used: of the model, of the precision that was asked for, or given."""
    usual = local.thresholds
    strict = dict(zip(local.labels, local.strictness.thresholds(0.9, None), strict=True))
    for asked, expected in (
        ({}, usual),
        ({"precision": 0.9}, strict),
        ({"precision": 0.9, "threshold": {"joy": 0.25}}, strict | {"joy": 0.25}),
    ):
        for result in results_of(service.ask("/v1/predict", {"texts": TEXTS, "explain": True, **asked})):
            told = {name: np.inf if cut is None else cut for name, cut in result["thresholds"].items()}
            assert told == pytest.approx(expected)
            assert result["labels"] == [name for name, score in result["scores"].items() if score >= told[name]]


def test_a_precision_is_refused_by_a_model_without_a_table_of_it(local, tmp_path):
    plain = emoglot.Model(replace(local.state, strictness=None), local.encoder)
    with running(tmp_path, "--model", plain.save(tmp_path / "plain")) as service:
        assert service.ask("/v1/model").json()["strictness"] is False
        for name in ("precision", "recall"):
            response = service.ask("/v1/predict", {"text": "a", name: 0.5})
            assert response.status == 422
            assert response.json()["detail"][0]["loc"] == [name]
            assert "no table of precision and recall" in response.json()["detail"][0]["msg"]


def test_what_can_not_be_read_has_no_scores(service):
    for result in results_of(service.ask("/v1/predict", {"texts": ["", "  "]})):
        assert (result["labels"], result["scores"], result["sentiment"]) == ([], {}, None)


def test_a_report_is_made_of_a_scored_table(service, local):
    pytest.importorskip("polars")
    names = ["text", "time", "source", "labels", *local.labels]
    lines = [",".join(names)]
    for day, prediction in enumerate(local.predict(TEXTS), start=1):
        labels = f'"{",".join(prediction.labels)}"'
        scores = [f"{prediction.scores.get(name, 0):.5f}" for name in local.labels]
        lines.append(",".join([f"text {day}", f"2026-03-{day:02d}", "<b>shop</b>", labels, *scores]))
    table = "\n".join(lines).encode()
    response = service.ask("/v1/report?name=mine.csv&time=time&group=source", table)
    assert response.status == 200, response.data
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    page = response.data.decode()
    assert "Emotions in mine.csv" in page
    assert "&lt;b&gt;shop&lt;/b&gt;" in page
    assert "<b>shop" not in page
    for wrong, path in ((b"a,b\n1,2\n", ""), (table, "?time=nothing"), (b"", "")):
        response = service.ask(f"/v1/report{path}", wrong)
        assert response.status == 422
        assert isinstance(response.json()["detail"], str)
        assert "--" not in response.json()["detail"]
    renamed = table.replace(b"text,time", b"Antwort,time", 1)
    refused = service.ask("/v1/report?name=mine.csv", renamed)
    assert refused.status == 422
    assert refused.json()["detail"].startswith("mine.csv has no column 'text'")
    assert service.ask("/v1/report?text=Antwort", renamed).status == 200


def test_no_texts_have_no_results(service):
    assert results_of(service.ask("/v1/predict", {"texts": []})) == []


def test_thresholds_can_be_given_for_each_label(service, local):
    given = {"joy": 0.0, "anger": 1.0}
    results = results_of(service.ask("/v1/predict", {"texts": TEXTS[:3], "threshold": given}))
    for result, expected in zip(results, local.predict(TEXTS[:3]), strict=True):
        assert "joy" in result["labels"]
        assert "anger" not in result["labels"]
        assert set(result["labels"]) - {"joy"} == set(expected.labels) - {"joy", "anger"}


def test_top_k_keeps_the_highest_scores(service, local):
    (result,) = results_of(service.ask("/v1/predict", {"text": TEXTS[0], "top_k": 2}))
    ranked = sorted(local.predict([TEXTS[0]])[0].scores.items(), key=lambda item: -item[1])
    highest = [name for name, _ in ranked[:2]]
    assert list(result["scores"]) == [name for name, _ in ranked if name in (*highest, *result["labels"])]


def test_top_k_hides_no_score_of_a_label(service, local):
    question = {"text": TEXTS[0], "top_k": 1, "threshold": dict.fromkeys(local.labels, 0)}
    (result,) = results_of(service.ask("/v1/predict", question))
    assert set(result["labels"]) == set(result["scores"]) == set(local.labels)
    assert sorted(result["scores"].values(), reverse=True) == list(result["scores"].values())


def test_the_model_is_described(service, local):
    described = service.ask("/v1/model").json()
    assert [label["id"] for label in described["labels"]] == list(local.labels)
    assert {label["id"]: label["threshold"] for label in described["labels"]} == local.thresholds
    kinds = {label["id"]: (label["kind"], label["opposite"], label["of"]) for label in described["labels"]}
    assert kinds["joy"] == ("primary", "sadness", None)
    assert kinds["love"] == ("dyad", None, ["joy", "trust"])
    assert described["limits"] == {"texts": 50, "characters": 5000, "body_bytes": 40_000}
    assert described["card"].startswith("# tiny-model")
    assert described["languages"] == []  # nobody has measured those of this model


def test_many_clients_get_their_own_answers_in_order(service, local):
    """64 clients ask at once for texts of their own; each answer is that of the local model."""
    texts = [[f"{word} number {client}" for word in ("happy", "furious", "afraid")] for client in range(64)]
    with ThreadPoolExecutor(64) as clients:
        answers = list(clients.map(lambda own: results_of(service.ask("/v1/predict", {"texts": own})), texts))
    for own, results in zip(texts, answers, strict=True):
        expected = local.predict_proba(own)
        found = np.array([[result["scores"][name] for name in local.labels] for result in results])
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_embedded_model_lists_its_languages(tmp_path):
    with running(tmp_path) as service:
        described = service.ask("/v1/model").json()
        assert described["name"] == "emoglot-small"
        assert len(described["languages"]) >= 100
        swahili = next(language for language in described["languages"] if language["code"] == "sw")
        assert set(swahili["threshold"]) == {label["id"] for label in described["labels"]}
        plain, own = (
            results_of(service.ask("/v1/predict", {"text": "Nina furaha", "language": code}))[0]
            for code in (None, "sw")
        )
        assert plain["scores"] == own["scores"]
        assert own["labels"] == [name for name, score in own["scores"].items() if score >= swahili["threshold"][name]]
