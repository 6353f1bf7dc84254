"""Tables of a page: with a caption, and with headings that a screen reader tells for each cell."""

from collections.abc import Collection, Sequence
from html import escape

Cell = object
"""Text, a number, None for what is not known, or (text, class)."""


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], text: Collection[int] = (0,)
) -> str:
    """The first cell of a row names it. `text`: columns that are not numbers."""
    kind = [' class="text"' if index in text else "" for index in range(len(columns))]
    head = "".join(f'<th scope="col"{kind[k]}>{escape(name)}</th>' for k, name in enumerate(columns))
    body = "".join(
        f'<tr><th scope="row"{kind[0]}>{_text(row[0])}</th>'
        + "".join(_cell(cell, index in text) for index, cell in enumerate(row[1:], 1))
        + "</tr>\n"
        for row in rows
    )
    return scrolling(
        caption,
        f"<table>\n<caption>{escape(caption)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>",
    )


def scrolling(name: str, content: str) -> str:
    """What may be wider than a phone, to be moved by touch and, because it can have the focus, by key."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">{content}</div>\n'


def _cell(cell: Cell, is_text: bool) -> str:
    classes = ["text"] if is_text else []
    if isinstance(cell, tuple):
        cell, kind = cell
        classes.append(kind)
    written = f' class="{" ".join(classes)}"' if classes else ""
    return f"<td{written}>{_text(cell)}</td>"


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
    return escape(str(cell))
