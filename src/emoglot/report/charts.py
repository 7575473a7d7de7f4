"""Charts as inline SVG: bars, lines and dots with intervals, titles and descriptions for screen readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from emoglot.labels import SEMEVAL_LABELS
from emoglot.report.aggregate import GroupShares, Share, Timeline

OTHER = "c-other"
_COLOURED = frozenset((*SEMEVAL_LABELS, "positive", "negative"))
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_TICKS = 5
_BAR_ROW, _BAR_HEIGHT = 44, 14
_LINE_WIDTH, _LINE_HEIGHT = 300, 140
_DOT_WIDTH, _DOT_ROW, _DOT_NAMES = 300, 21, 108
_SHOWN_NAME = 16  # characters of the name of a group
_MOST_DOTS_ON_LINE = 31


@dataclass(frozen=True)
class Bar:
    """A bar: its name, share and CSS class."""

    name: str
    share: Share
    colour: str


def percent(value: float) -> str:
    """Return a share in percent, with one digit after the point."""
    shown = 100 * value
    if 0 < shown < 0.05:
        return "< 0.1 %"
    return f"{shown:.1f} %" if shown < 99.95 else "100 %"


def interval(share: Share) -> str:
    """Return the interval of a share, in percent."""
    digits = 1 if share.high >= 0.001 else 2
    return f"{100 * share.low:.{digits}f}–{100 * share.high:.{digits}f}"


def colour_of(label: str) -> str:
    """Return the CSS class of a label or a sentiment."""
    return f"c-{label}" if label in _COLOURED else OTHER


def nice_top(highest: float) -> tuple[float, float]:
    """Return a round end of an axis for the highest share, and the step between its ticks."""
    highest = min(max(highest, 0.001), 1.0)
    size: float = 10 ** floor(log10(highest / _MOST_TICKS))
    step = next(size * factor for factor in _STEPS if size * factor * _MOST_TICKS >= highest * 0.9999)
    return min(ceil(highest / step - 1e-9) * step, 1.0), step


def _ticks(top: float, step: float) -> list[float]:
    return [index * step for index in range(round(top / step) + 1)]


def _tick_name(value: float, step: float) -> str:
    is_whole = abs(100 * step - round(100 * step)) < 1e-9 or value == 0
    digits = 0 if is_whole else 1 if step >= 0.001 else 2
    return f"{100 * value:.{digits}f} %"


def _svg(name: str, size: str, title: str, description: str, content: Sequence[str]) -> str:
    return (
        f'<svg class="{name}" {size} role="img" aria-label="{escape(f"{title}. {description}")}">'
        f"<desc>{escape(description)}</desc>{''.join(content)}</svg>"
    )


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Draw horizontal bars with whiskers; widths are in percent, so that text keeps its size on small screens."""
    top, step = nice_top(max((row.share.high for row in rows), default=0.0))
    height = _BAR_ROW * len(rows)
    parts = []
    for tick in _ticks(top, step):
        x, anchor = 100 * tick / top, "start" if tick == 0 else "end" if tick >= top * 0.999 else "middle"
        parts.append(f'<line class="grid" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{height}"/>')
        parts.append(f'<text class="tick" x="{x:.2f}%" y="{height + 16}" text-anchor="{anchor}">')
        parts.append(f"{_tick_name(tick, step)}</text>")
    for index, row in enumerate(rows):
        parts += _bar(row, top, _BAR_ROW * index)
    told = "; ".join(f"{row.name} {percent(row.share.value)} ({interval(row.share)})" for row in rows)
    return _svg("bars", f'width="100%" height="{height + 24}"', title, told, parts)


def _bar(row: Bar, top: float, y: int) -> list[str]:
    middle = y + 22 + _BAR_HEIGHT / 2
    value, low, high = (100 * share / top for share in (row.share.value, row.share.low, row.share.high))
    return [
        f'<text class="name" x="0" y="{y + 16}">{escape(row.name)}</text>',
        f'<text class="value" x="100%" y="{y + 16}" text-anchor="end">{percent(row.share.value)}',
        f'<tspan class="soft" dx="8">{interval(row.share)}</tspan></text>',
        f'<rect class="bar {row.colour}" x="0" y="{y + 22}" width="{value:.3f}%" height="{_BAR_HEIGHT}"/>',
        f'<line class="whisker" x1="{low:.3f}%" x2="{high:.3f}%" y1="{middle}" y2="{middle}"/>',
        *(
            f'<line class="whisker" x1="{x:.3f}%" x2="{x:.3f}%" y1="{middle - 4}" y2="{middle + 4}"/>'
            for x in (low, high)
        ),
    ]


def line(label: str, index: int, timeline: Timeline) -> str:
    """Draw the share of a label over time with a band of intervals, and gaps where there are no texts."""
    shares = [cell.shares[index] if cell else None for cell in timeline.points]
    known = [share for share in shares if share]
    # Wide intervals of points with few texts must not flatten the line.
    highest = max(share.value for share in known)
    top, step = nice_top(min(max(share.high for share in known), max(2 * highest, 0.01)))
    left, right, upper, lower = 40.0, _LINE_WIDTH - 8.0, 10.0, _LINE_HEIGHT - 24.0

    def x(place: int) -> float:
        return left + (right - left) * (place + 0.5) / len(shares)

    def y(value: float) -> float:
        return lower - (lower - upper) * min(value, top) / top

    parts = []
    for tick in (0.0, *_ticks(top, step)[-1:]):
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text class="tick" x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">')
        parts.append(f"{_tick_name(tick, tick)}</text>")
    for run in _runs(shares):
        path = [(x(place), y(share.low), y(share.value), y(share.high)) for place, share in run]
        parts += _curve(path, colour_of(label), with_points=len(shares) <= _MOST_DOTS_ON_LINE or len(run) == 1)
    first, last = timeline.names[0], timeline.names[-1]
    parts.append(f'<text class="tick" x="{left}" y="{_LINE_HEIGHT - 6}">{escape(first)}</text>')
    if last != first:
        parts.append(f'<text class="tick" x="{right}" y="{_LINE_HEIGHT - 6}" text-anchor="end">{escape(last)}</text>')
    size = f'viewBox="0 0 {_LINE_WIDTH} {_LINE_HEIGHT}"'
    return _svg("lines", size, f"{label} over time", _told_over_time(shares, timeline.names), parts)


def _curve(path: Sequence[tuple[float, float, float, float]], colour: str, *, with_points: bool) -> list[str]:
    """Draw a line with its band through points (x, and y of low end, share and high end)."""
    edges = [f"{x:.1f},{high:.1f}" for x, _, _, high in path] + [f"{x:.1f},{low:.1f}" for x, low, _, _ in path[::-1]]
    middle = " ".join(f"{x:.1f},{y:.1f}" for x, _, y, _ in path)
    parts = [f'<polygon class="band {colour}" points="{" ".join(edges)}"/><polyline class="line" points="{middle}"/>']
    if with_points:
        parts += [f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>' for x, _, y, _ in path]
    return parts


def _runs(shares: Sequence[Share | None]) -> list[list[tuple[int, Share]]]:
    """Split points at gaps."""
    runs: list[list[tuple[int, Share]]] = [[]]
    for place, share in enumerate(shares):
        if share is None:
            runs.append([])
        else:
            runs[-1].append((place, share))
    return [run for run in runs if run]


def _told_over_time(shares: Sequence[Share | None], names: Sequence[str]) -> str:
    known = [(share.value, name) for share, name in zip(shares, names, strict=True) if share]
    highest, lowest = max(known, key=lambda pair: pair[0]), min(known, key=lambda pair: pair[0])
    ends = f"{percent(known[0][0])} in {known[0][1]}, {percent(known[-1][0])} in {known[-1][1]}"
    return f"{ends}; highest {percent(highest[0])} in {highest[1]}, lowest {percent(lowest[0])} in {lowest[1]}"


def dots(label: str, index: int, groups: Sequence[GroupShares], overall: Share) -> str:
    """Draw a dot with a whisker for each group, and a line at the share in all texts."""
    shares = [group.shares[index] for group in groups]
    highest = max([overall.value, *(share.value for share in shares)])
    top, step = nice_top(min(max(share.high for share in shares), max(2 * highest, 0.01)))
    left, right, lower = float(_DOT_NAMES), _DOT_WIDTH - 14.0, _DOT_ROW * len(groups) + 4

    def x(value: float) -> float:
        return left + (right - left) * min(value, top) / top

    parts = []
    for tick in (0.0, *_ticks(top, step)[-1:]):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="2" y2="{lower}"/>')
        parts.append(f'<text class="tick" x="{x(tick):.1f}" y="{lower + 15}" text-anchor="middle">')
        parts.append(f"{_tick_name(tick, tick)}</text>")
    at = f"{x(overall.value):.1f}"
    parts.append(f'<line class="overall" x1="{at}" x2="{at}" y1="2" y2="{lower}"/>')
    for row, (group, share) in enumerate(zip(groups, shares, strict=True)):
        y = _DOT_ROW * row + 14
        low, high, middle = (f"{x(value):.1f}" for value in (share.low, share.high, share.value))
        parts.append(f'<text class="tick" x="{left - 8}" y="{y + 4}" text-anchor="end">')
        parts.append(f"<title>{escape(group.name)}</title>{escape(_shortened(group.name))}</text>")
        parts.append(f'<line class="whisker" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle class="dot {colour_of(label)}" cx="{middle}" cy="{y}" r="5"/>')
    told = "; ".join(f"{group.name} {percent(share.value)}" for group, share in zip(groups, shares, strict=True))
    size = f'viewBox="0 0 {_DOT_WIDTH} {lower + 22}"'
    return _svg("dots", size, f"{label} by group", f"{told}; all texts {percent(overall.value)}", parts)


def _shortened(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME else f"{name[: _SHOWN_NAME - 1]}…"
