"""How commands are parsed and how their help is printed: plain text in sections, readable in 80 columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import Signature, signature
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ArgumentInfo, ParameterInfo

if TYPE_CHECKING:
    HelpFormatter = Any  # from click, or from the copy of click in newer versions of typer

ARGUMENTS, OPTIONS = "Arguments", "Options"
# The metavar of an option that does not define one, by type; flags have none.
_VALUES: dict[type, str] = {bool: "", int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}
# What is parsed as an option: -h, --json, --model=DIR. Anything else that begins with a dash is a text.
_OPTION = re.compile(r"--?[a-z][a-z-]*|--[a-z][a-z-]*=.*", re.IGNORECASE | re.DOTALL)


class Command(TyperCommand):
    """A command whose help lists its options in sections."""

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the parts of the usage line: `IN`, where typer has `{IN}`."""
        return [re.sub(r"^\{(.*)\}(?:\.\.\.)?$", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: typer.Context, formatter: HelpFormatter) -> None:  # type: ignore[override]
        """Write arguments and options, then the other sections in the order of the first option of each."""
        _write_sections(self.get_params(ctx), ctx, formatter)


class Group(TyperGroup):
    """A group of commands with the same kind of help."""

    def format_options(self, ctx: typer.Context, formatter: HelpFormatter) -> None:  # type: ignore[override]
        """Write the options, then the commands."""
        _write_sections(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)


class TextsCommand(Command):
    """A command whose arguments are texts: `-I am sad` is one, while `--langauge` is a misspelt option."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the arguments, with all texts after `--`, so that they are not parsed as options."""
        options: list[str] = []
        texts: list[str] = []
        remaining = iter(args)
        for argument in remaining:
            if argument == "--":
                texts += remaining
            elif not _OPTION.fullmatch(argument):
                texts.append(argument)
            elif argument not in self._names_with_value():
                options.append(argument)
            elif (value := next(remaining, None)) is not None:
                options += [argument, value]
            else:
                return super().parse_args(ctx, [argument])  # which raises an error: the value is missing
        return super().parse_args(ctx, [*options, "--", *texts])

    def _names_with_value(self) -> set[str]:
        options = [param for param in self.params if not isinstance(param, TyperArgument)]
        return {name for param in options if not getattr(param, "is_flag", False) for name in param.opts}


def register(app: typer.Typer, name: str, function: Callable[..., None], kind: type[Command] = Command) -> None:
    """Add a function to an app as a command, with a metavar for each of its options."""
    app.command(name, cls=kind)(with_metavars(function))


def with_metavars(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function whose options without a metavar have the one of their type, such as N for a number."""
    hints = get_type_hints(function, include_extras=True)
    parameters = []
    for parameter in signature(function).parameters.values():
        annotation = hints.get(parameter.name, parameter.annotation)
        kind, *notes = get_args(annotation) if get_origin(annotation) is Annotated else [annotation]
        for info in notes:
            if isinstance(info, ParameterInfo) and info.metavar is None:
                is_argument = isinstance(info, ArgumentInfo)
                info.metavar = parameter.name.upper() if is_argument else _VALUES[_bare(kind)]
        parameters.append(parameter.replace(annotation=annotation))
    # Evaluated only here: typer would evaluate the annotations, which are strings, to other objects.
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function


def _bare(kind: Any) -> type:
    """Return the type of a single value: Path for `list[Path] | None`."""
    while get_args(kind):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    assert isinstance(kind, type)
    return kind


def _write_sections(params: Iterable[Any], ctx: typer.Context, formatter: HelpFormatter) -> None:
    sections: dict[str, list[tuple[str, str]]] = {ARGUMENTS: [], OPTIONS: []}
    for param in params:
        record = param.get_help_record(ctx)
        if record is None:
            continue
        if isinstance(param, TyperArgument):
            sections[ARGUMENTS].append((param.metavar or str(param.name).upper(), record[1]))
        else:
            sections.setdefault(param.rich_help_panel or OPTIONS, []).append(record)
    for title, records in sections.items():
        if not records:
            continue
        with formatter.section(title):
            formatter.write_dl(records)
