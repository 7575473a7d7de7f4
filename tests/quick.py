"""Deselects the tests that need torch or a browser: `pytest -p tests.quick`, which `make quick` runs."""

from __future__ import annotations

import pytest

# Fixtures that train a model, build a torch network or start a browser or a service.
SLOW_FIXTURES = {"trained", "model_folder", "xlmr_folder", "browser", "service"}
# Files that need torch, or datasets that may not be passed on.
SLOW_FILES = {"test_export.py", "test_folder.py", "test_recipe.py", "test_real_corpora.py"}


def pytest_ignore_collect(collection_path: object) -> bool | None:
    return True if getattr(collection_path, "name", "") in SLOW_FILES else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = [item for item in items if SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]
