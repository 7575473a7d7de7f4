"""Tables as dataclasses: types, rules, nested tables, and what the messages name."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emoglot.errors import UsageError
from emoglot.schema import Checked, Rule, build, choice, fill, number, one_of, ruled, within


@dataclass(frozen=True)
class Point:
    x: float
    y: float | None = None


@dataclass(frozen=True)
class Drawing:
    title: str
    points: tuple[Point, ...]
    size: tuple[int, int] = (1, 1)
    colours: list[str] = field(default_factory=list, metadata=ruled(one_of(("red", "blue"))))
    weights: dict[str, float] = field(default_factory=dict, metadata=ruled(within(0, 1)))
    layers: int | str = 1
    even: int = field(default=0, metadata=ruled(Rule("even", lambda value: value % 2 == 0)))


@dataclass(frozen=True)
class Pen(Checked, prefix="pen."):
    kind: str = choice(("ink", "lead"))
    width: float = number(0.5, 0.1)


@dataclass(frozen=True)
class Desk(Checked):
    lamp: bool = True
    pen: Pen = field(default_factory=Pen)


@dataclass(frozen=True)
class Book:
    pages: int = field(metadata=ruled(within(1)))


def test_a_table_becomes_what_the_fields_declare():
    drawing = build(Drawing, {"title": "a", "points": [{"x": 1}, {"x": 2.5, "y": 3}], "weights": {"b": 1}})
    assert drawing == Drawing("a", (Point(1.0), Point(2.5, 3.0)), weights={"b": 1.0})
    assert all(isinstance(point.x, float) for point in drawing.points)
    assert build(Drawing, {"title": "a", "points": (), "size": [2, 3], "layers": "all"}).size == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"title": 3}, "title must be a text, got 3"),
        ({"points": {"x": 1}}, "points must be a list, got {'x': 1}"),
        ({"points": [3]}, "each of points must be a table, got 3"),
        ({"points": [{"x": True}]}, "each of points.x must be a number, got True"),
        ({"points": [{}]}, "'each of points.x' is missing"),
        ({"size": [1]}, "size must be a list of 2, got [1]"),
        ({"size": [1, 2.0]}, "each of size must be a whole number, got 2.0"),
        ({"colours": ["red", "green"]}, "each of colours must be one of red, blue, got 'green'"),
        ({"weights": {"a": 2}}, "weights.a must be in [0, 1], got 2.0"),
        ({"weights": {"a": 10**400}}, "weights.a must be a number, got a value that is too large"),
        ({"layers": None}, "layers must be a text, got None"),
        ({"even": 3}, "even must be even, got 3"),
        ({"frame": 1}, "there is no entry 'frame': choose one of title, points, size"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name(change, message):
    with pytest.raises(UsageError) as caught:
        build(Drawing, {"title": "a", "points": []} | change)
    assert str(caught.value).startswith(message)


def test_a_field_without_a_default_must_be_there():
    with pytest.raises(UsageError, match=r"^'pages' is missing$"):
        build(Book, {})
    with pytest.raises(UsageError, match=r"^it must be a table, got 3$"):
        build(Book, 3)
    assert build(Book, {"pages": 3, "cover": "red"}, ignore_unknown=True) == Book(3)


def test_settings_are_checked_however_they_are_made():
    with pytest.raises(UsageError, match=r"^pen.kind must be one of ink, lead, got 'chalk'$"):
        Pen("chalk")
    with pytest.raises(UsageError, match=r"^pen.width must be at least 0.1, got 0.0$"):
        fill(Desk(), {"pen": {"width": 0}})
    with pytest.raises(UsageError, match=r"^there is no setting 'pen.colour': choose one of kind, width$"):
        fill(Desk(), {"pen": {"colour": "red"}})
    with pytest.raises(UsageError, match=r"^pen must be a table, got 3$"):
        fill(Desk(), {"pen": 3})
    assert fill(Desk(pen=Pen("lead")), {"pen": {"width": 2}}) == Desk(pen=Pen("lead", 2.0))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_value_is_taken_or_refused_in_one_line(value):
    for name in ("points", "size", "colours", "weights", "layers"):
        try:
            build(Drawing, {"title": "a", "points": [], name: value})
        except UsageError as error:
            message = str(error)
        else:
            continue
        assert "\n" not in message
        assert len(message) < 200
