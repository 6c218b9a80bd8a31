"""A picture of a terminal, as SVG: what a command printed, in its colours.

Nothing is loaded from elsewhere, and text stays text, so that it can be found and read aloud.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rich.style import Style
from rich.text import Text

SIZE, WIDTH, HEIGHT = 14, 8.43, 19
"""Of a letter and its cell, in pixels; `textLength` fits any font to them."""
MARGIN = 16
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
FOREGROUND, BACKGROUND = "#d8dee9", "#1d2330"
COLOURS = {
    1: "#ff7b72",  # red
    2: "#7ee787",  # green
    3: "#f2cc60",  # yellow
    4: "#79c0ff",  # blue
    5: "#d2a8ff",  # magenta
    6: "#76e3ea",  # cyan
}


def picture(command: str, printed: str) -> str:
    """The command line, and what it printed with escape sequences for colours."""
    lines = [Text(f"$ {command}", "bold"), *Text.from_ansi(printed).split()]
    columns = max(line.cell_len for line in lines)
    width, height = round(columns * WIDTH) + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    rows = "".join(_row(line, row) for row, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        f'font-family="{FONTS}" '
        f'font-size="{SIZE}">\n<title>{escape(f"The output of {command}")}</title>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>\n{rows}</svg>\n'
    )


def _row(line: Text, row: int) -> str:
    """The pieces of a line that have one style each."""
    y = MARGIN + HEIGHT * row + SIZE
    return "".join(_piece(text, column, y, style) for text, column, style in _pieces(line))


def _piece(text: str, column: int, y: int, style: Style) -> str:
    number = style.color.number if style.color is not None else None
    colour = FOREGROUND if number is None else COLOURS.get(number % 8, FOREGROUND)
    weight = ' font-weight="bold"' if style.bold else ""
    opacity = ' fill-opacity="0.65"' if style.dim else ""
    return (
        f'<text x="{MARGIN + column * WIDTH:.1f}" y="{y}" textLength="{len(text) * WIDTH:.1f}" '
        f'lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="{colour}"'
        f"{weight}{opacity}>{escape(text)}</text>\n"
    )


def _pieces(line: Text) -> Iterator[tuple[str, int, Style]]:
    """Runs of letters with one style, without the spaces around them, and where they begin."""
    styles = [Style()] * len(line.plain)
    for span in [(0, len(line.plain), line.style), *line.spans]:
        start, end, style = span
        given = style if isinstance(style, Style) else Style.parse(style)
        styles[start:end] = [each + given for each in styles[start:end]]
    start = 0
    for end in range(1, len(styles) + 1):
        if end == len(styles) or styles[end] != styles[start]:
            run = line.plain[start:end]
            if text := run.strip():
                yield text, start + len(run) - len(run.lstrip()), styles[start]
            start = end
