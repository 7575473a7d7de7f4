"""Settings: defaults are the paper's, TOML fills them, nothing unknown or out of range gets in."""

from __future__ import annotations

import pytest

from emoglot.config import SOURCE_WEIGHTS, Config, HeadConfig, parse_setting
from emoglot.errors import UsageError


def test_defaults_are_the_authors_best_for_three_languages():
    config = Config()
    assert (config.head.dropout, config.head.layers, config.head.hidden) == (0.2201, 2, 128)
    assert (config.training.learning_rate, config.training.weight_decay) == (1.01e-3, 1.45e-8)
    assert (config.loss.kappa, config.loss.gamma, config.training.batch_size) == (0.2965, 4, 32)
    assert (config.training.patience, config.training.thresholding_fraction) == (10, 0.3)
    assert not config.wide.enabled


def test_a_config_survives_its_dictionary():
    config = Config().override({"head.kind": "gru", "loss.gamma": 2, "task": "single-label", "wide.enabled": True})
    assert Config.from_dict(config.to_dict()) == config
    assert config.loss.gamma == 2.0
    assert isinstance(config.loss.gamma, float)


def test_toml_replaces_only_what_it_names(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('[head]\nkind = "rnn"\n[training]\nseed = 3\n', encoding="utf-8")
    assert Config.from_toml(path) == Config().override({"head.kind": "rnn", "training.seed": 3})


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("head.hidden=64", ("head.hidden", 64)),
        ("loss.gamma=.5", ("loss.gamma", 0.5)),
        ("loss.gamma=0.5", ("loss.gamma", 0.5)),
        ("head.kind=gru", ("head.kind", "gru")),
        ("head.bidirectional=false", ("head.bidirectional", False)),
    ],
)
def test_a_setting_is_a_name_and_a_value(setting, expected):
    assert parse_setting(setting) == expected


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"head.size": 3}, "no setting 'head.size': choose one of kind, hidden"),
        ({"body.size": 3}, "no setting 'body'"),
        ({"head": 3}, "head must be a table, got 3"),
        ({"head.hidden": "many"}, "head.hidden must be a whole number, got 'many'"),
        ({"head.hidden": 0}, r"head.hidden must be in \[1, 4096\], got 0"),
        ({"head.hidden": True}, "head.hidden must be a whole number, got True"),
        ({"head.kind": "cnn"}, "head.kind must be one of lstm, gru, rnn, xml-cnn, attention, got 'cnn'"),
        ({"loss.beta": 1.0}, r"loss.beta must be in \[0, 1\), got 1.0"),
        ({"loss.kappa": 1.5}, "loss.kappa"),
        ({"training.learning_rate": float("nan")}, "training.learning_rate"),
        ({"training.learning_rate": "fast"}, "training.learning_rate must be a number, got 'fast'"),
        ({"task": "regression"}, "task must be one of"),
        ({"training.single_choice": {"tec": 1.5}}, r"training.single_choice.tec must be in \[0, 1\], got 1.5"),
        ({"fine_tune.layer_decay": 0.0}, "fine_tune.layer_decay"),
        ({"fine_tune": {"frozen_layers": 2, "embeddings": True}}, "fine_tune.embeddings cannot be trained below 2"),
    ],
)
def test_an_invalid_setting_is_refused(settings, rule):
    with pytest.raises(UsageError, match=rule):
        Config().override(settings)


@pytest.mark.parametrize(("setting", "value"), [("hidden", "64"), ("hidden", 64.5), ("dropout", "0.1")])
def test_a_section_made_by_hand_is_checked_too(setting, value):
    with pytest.raises(UsageError, match=f"head.{setting} must be a"):
        HeadConfig(**{setting: value})


@pytest.mark.parametrize("setting", ["head.hidden", "=3", ""])
def test_a_setting_without_name_or_value_is_refused(setting):
    with pytest.raises(UsageError, match="name=value"):
        parse_setting(setting)


def test_a_broken_or_missing_file_is_refused(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("head = [", encoding="utf-8")
    with pytest.raises(UsageError, match="is not TOML"):
        Config.from_toml(broken)
    with pytest.raises(UsageError, match="cannot read the config"):
        Config.from_toml(tmp_path / "none.toml")


def test_a_config_that_was_written_is_read_again(tmp_path):
    changes = {"wide.without_sources": ['a "b"\\c', "Ünï 😀"], "training.weight_decay": 1.45e-8, "wide.enabled": True}
    config = Config().override(changes)
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml(), encoding="utf-8")
    assert Config.from_toml(path) == config


def test_fine_tuning_has_defaults_of_its_own():
    tuned = Config.from_dict({"fine_tune": {"enabled": True}, "training": {"max_epochs": 5}})
    assert tuned == Config.for_fine_tuning().override({"training.max_epochs": 5})
    assert (tuned.head.kind, tuned.loss.gamma) == ("attention", 2.0)
    assert Config.from_dict(tuned.to_dict()) == tuned
    assert Config.from_dict({"fine_tune": {"enabled": False}}) == Config()


def test_a_table_inside_of_a_section_is_written_and_read(tmp_path):
    config = Config().override({"training.single_choice": {"tec_en": 0.25, "odd name": 0.5}})
    (tmp_path / "config.toml").write_text(config.to_toml(), encoding="utf-8")
    assert Config.from_toml(tmp_path / "config.toml") == config
    once = Config().override({"training.single_choice.tec_en": 0.25, "training.single_choice.odd name": 0.5})
    assert once == config
    assert parse_setting("training.single_choice={tec_en=0.25}") == ("training.single_choice", {"tec_en": 0.25})


def test_one_entry_of_a_table_leaves_its_other_defaults(tmp_path):
    (tmp_path / "config.toml").write_text("[teaching.sources]\nbible = 0.1\nnews = 2\n", encoding="utf-8")
    read = Config.from_toml(tmp_path / "config.toml")
    assert read.teaching.sources == {**SOURCE_WEIGHTS, "bible": 0.1, "news": 2.0}
    assert read == Config().override({"teaching.sources": {"bible": 0.1, "news": 2}})


def test_a_dataset_is_named_with_or_without_its_language():
    settings = Config().override({"training.single_choice": {"nusax": 0.5, "nusax-su": 0.25, "isear": 0.0}}).training
    names = ["nusax-jv", "nusax-su", "nusax", "nusax-pt-BR", "isear", "other-jv", "isear-clean"]
    assert [settings.zero_weight(name) for name in names] == [0.5, 0.25, 0.5, 0.5, 0.0, 1.0, 1.0]
    assert settings.unused_choices(["nusax-jv", "other-jv"]) == ["isear", "nusax-su"]
