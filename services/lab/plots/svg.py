"""SVG as text. No xmlns: it stands inside HTML, which knows the elements by itself."""

from collections.abc import Sequence
from html import escape

Number = float | int


def tag(name: str, *children: str, **attributes: str | Number | None) -> str:
    """An element. `class_` is class, stroke_width stroke-width; None leaves an attribute out.

    Children are markup already: text comes from `text` or through `html.escape`.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(children)}</{name}>"


def text(content: str, x: Number, y: Number, *, class_: str = "label", anchor: str = "start") -> str:
    return tag("text", escape(content), x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: Number, y1: Number, x2: Number, y2: Number, class_: str) -> str:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def box(x: Number, y: Number, width: Number, height: Number, class_: str, title: str = "") -> str:
    """`title` is shown when it is pointed at."""
    shown = [tag("title", escape(title))] if title else []
    return tag("rect", *shown, x=x, y=y, width=max(0.0, width), height=max(0.0, height), class_=class_)


def picture(title: str, description: str, width: int, height: int, parts: Sequence[str]) -> str:
    """The whole plot; a screen reader reads title and description in its place."""
    return tag(
        "svg",
        tag("title", escape(title)),
        tag("desc", escape(description)),
        *parts,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=f"{title}. {description}",
    )


def _value(value: str | Number) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
