"""Reads TOML and JSON tables as dataclasses, and checks the types and rules of their fields.

pydantic does the same, but importing it takes as long as importing numpy (see CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from math import inf
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from emoglot.errors import UsageError, shown

T = TypeVar("T")
Check = Callable[[str, Any], Any]  # the name of a value and the value → the value, converted to its type

_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class Rule:
    """A rule for a value, as a function and as words for messages."""

    words: str
    holds: Callable[[Any], bool]


def within(low: float, high: float = inf) -> Rule:
    """Return the rule that a number is between two others, both included."""
    words = f"at least {low:g}" if high == inf else f"in [{low:g}, {high:g}]"
    return Rule(words, lambda value: bool(low <= value <= high))


def one_of(choices: Collection[str]) -> Rule:
    """Return the rule that a string is one of several."""
    return Rule(f"one of {', '.join(choices)}", lambda value: value in choices)


def ruled(rule: Rule) -> dict[str, Rule]:
    """Return the metadata of a field with a rule for its value or, in a list or table, for each of its values."""
    return {"rule": rule}


def number(default: float | None, low: float, high: float = inf) -> Any:
    """Return a field for a number within limits."""
    return field(default=default, metadata=ruled(within(low, high)))


def choice(choices: tuple[str, ...]) -> Any:
    """Return a field for one of several strings, the first by default."""
    return field(default=choices[0], metadata=ruled(one_of(choices)))


class Checked:
    """The base class of settings, which are also checked when they are created in Python."""

    _prefix: ClassVar[str] = ""

    def __init_subclass__(cls, prefix: str = "") -> None:
        cls._prefix = prefix  # of the names of fields in messages

    def __post_init__(self) -> None:
        _check_fields(self, self._prefix)


def build(kind: type[T], values: Any, name: str = "", *, ignore_unknown: bool = False) -> T:
    """Create a dataclass from a table of this name; fields without a default are required."""
    if not isinstance(values, Mapping):
        raise UsageError(f"{name or 'it'} must be a table, got {shown(values)}")
    checks = _checks_of(kind)
    if ignore_unknown:
        values = {name: value for name, value in values.items() if name in checks}
    prefix = _check_names(kind, values, name)
    if missing := [name for name in _needed(kind) if name not in values]:
        raise UsageError(f"{f'{prefix}{missing[0]}'!r} is missing")
    record = kind(**values)
    if not isinstance(record, Checked):
        _check_fields(record, prefix)
    return record


def fill(record: T, values: Mapping[str, Any]) -> T:
    """Return a copy of a dataclass with values replaced by those of a table, recursively."""
    _check_names(type(record), values)
    changes = {name: _merged(getattr(record, name), value) for name, value in values.items()}
    return replace(record, **changes)  # type: ignore[type-var]


def _merged(current: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if is_dataclass(current):
        return fill(current, value)
    return {**current, **value} if isinstance(current, Mapping) else value


def _check_names(kind: Any, values: Mapping[str, Any], name: str = "") -> str:
    """Raise an error for an unknown name; return the prefix of the names."""
    prefix, word = f"{name}." if name else "", "entry"
    if issubclass(kind, Checked):
        prefix, word = kind._prefix, "setting"
    checks = _checks_of(kind)
    if unknown := [name for name in values if name not in checks]:
        raise UsageError(f"there is no {word} {shown(f'{prefix}{unknown[0]}')}: choose one of {', '.join(checks)}")
    return prefix


def _check_fields(record: Any, prefix: str) -> None:
    for name, check in _checks_of(type(record)).items():
        value = getattr(record, name)
        checked = check(f"{prefix}{name}", value)
        if checked is not value:
            object.__setattr__(record, name, checked)


def _needed(kind: Any) -> list[str]:
    return [item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING]


def _make_checks(kind: Any) -> dict[str, Check]:
    hints = get_type_hints(kind)
    return {item.name: _check_of(hints[item.name], item.metadata.get("rule")) for item in fields(kind)}


_checks_of: Callable[[Any], dict[str, Check]] = cache(_make_checks)  # of the fields of a dataclass, by name


@cache
def _check_of(hint: Any, rule: Rule | None = None) -> Check:
    """Return the check of a type; a rule also applies to the values in lists and tables."""
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if hint is Any:
        return partial(_check_rule, rule)
    if kind is UnionType:
        checks = [_check_of(part, rule) for part in arguments if part is not NoneType]
        return partial(_check_any, checks, NoneType in arguments)
    if kind in (list, tuple):
        count = None if kind is list or ... in arguments else len(arguments)
        return partial(_check_list, kind, _check_of(arguments[0], rule), count)
    if kind in (dict, Mapping):
        return partial(_check_table, _check_of(arguments[1], rule))
    return partial(_check_record, hint) if is_dataclass(hint) else partial(_check_plain, hint, rule)


def _check_plain(kind: Any, rule: Rule | None, name: str, value: Any) -> Any:
    if kind is float and type(value) is int:
        try:
            value = float(value)
        except OverflowError:
            raise UsageError(f"{name} must be a number, got a value that is too large") from None
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise UsageError(f"{name} must be {_NAMES[kind]}, got {shown(value)}")
    return _check_rule(rule, name, value)


def _check_rule(rule: Rule | None, name: str, value: Any) -> Any:
    if rule is not None and not rule.holds(value):
        raise UsageError(f"{name} must be {rule.words}, got {shown(value)}")
    return value


def _check_any(checks: list[Check], may_be_none: bool, name: str, value: Any) -> Any:
    if value is None and may_be_none:
        return None
    for check in checks[:-1]:
        try:
            return check(name, value)
        except UsageError:
            pass
    return checks[-1](name, value)


def _check_list(kind: Any, check: Check, count: int | None, name: str, value: Any) -> Any:
    if not isinstance(value, list | tuple) or count not in (None, len(value)):
        raise UsageError(f"{name} must be a list{f' of {count}' if count else ''}, got {shown(value)}")
    entry = name if name.startswith("each of ") else f"each of {name}"  # a list of lists
    return kind([check(entry, item) for item in value])


def _check_table(check: Check, name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} must be a table, got {shown(value)}")
    return {key: check(f"{name}.{key}", item) for key, item in value.items()}


def _check_record(kind: Any, name: str, value: Any) -> Any:
    return value if isinstance(value, kind) else build(kind, value, name)
