"""Results as tables for people at a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

_COLUMNS = ("n", "median", "p90", "p95", "min", "max")


def spreads(title: str, rows: Mapping[str, Mapping[str, Any]], unit: str = "ms") -> Table:
    """A row for each of several spreads (`intervals.spread`)."""
    table = Table(title=title)
    table.add_column(unit)
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    for name, spread in rows.items():
        table.add_row(name, *(_number(spread.get(column)) for column in _COLUMNS))
    return table


def cut_rates(rates: Mapping[str, Mapping[str, Any]]) -> Table:
    """Cut-off rates with their intervals (`cut.rates`)."""
    table = Table(title="cut off at an inner pause")
    for column in ("utterances", "cut", "of", "rate %", "95 % interval"):
        table.add_column(column, justify="left" if column == "utterances" else "right")
    for name, rate in rates.items():
        interval = f"{rate['low_percent']}–{rate['high_percent']}"
        table.add_row(name, str(rate["cut"]), str(rate["of"]), str(rate["rate_percent"]), interval)
    return table


def plain(title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> Table:
    """Anything else; the first column is text."""
    table = Table(title=title)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, str) else _number(cell) for cell in row))
    return table


def _number(value: object) -> str:
    """Three digits are enough; what is not known is a dash."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
