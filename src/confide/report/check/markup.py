"""HTML and SVG from plain functions. What is `Safe` is markup already; any other string is text and gets escaped."""

from __future__ import annotations

from html import escape


class Safe(str):
    """Markup."""


Content = str | int | None


def tag(name: str, *content: Content, **attributes: object) -> Safe:
    """An element. In names of attributes `_` stands for `-`, one at the end is dropped; None leaves one out."""
    named = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    words = "".join(f' {key}="{escape(_short(value))}"' for key, value in named)
    return Safe(f"<{name}{words}>{join(*content)}</{name}>")


def picture(words: str, source: str) -> Safe:
    """An image, and the words for those who do not see it."""
    return Safe(f'<img alt="{escape(words)}" src="{escape(source)}">')


def join(*content: Content) -> Safe:
    """One after the other."""
    return Safe("".join(part if isinstance(part, Safe) else escape(str(part)) for part in content if part is not None))


def _short(value: object) -> str:
    """Coordinates need no more than two places."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
