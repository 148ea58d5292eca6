"""What the model gets of what a handler returned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_core import to_jsonable_python

from callfan._wire import jsontext

__all__ = ["Content", "ImagePart", "TextPart"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text among content parts."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image among content parts, by its URL, which may be a data URL."""

    url: str


class Content:
    """An output of several parts, in the order in which the model sees them."""

    __slots__ = ("parts",)

    def __init__(self, *parts: TextPart | ImagePart | str) -> None:
        self.parts: tuple[TextPart | ImagePart, ...] = tuple(TextPart(p) if isinstance(p, str) else p for p in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Content) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


def encode_output(value: object) -> str:
    """The output as JSON: a string, an array of content parts, or null. ValueError when it cannot be written."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return jsontext.encode_text(str.__str__(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return jsontext.encode_text(bytes(value).decode("utf-8", "replace"))
    if isinstance(value, Content):
        return _encode_parts(value.parts)
    if isinstance(value, (TextPart, ImagePart)):
        return _encode_parts([value])
    return jsontext.encode_text(_serialise(value))


def _serialise(value: object) -> str:
    """The value as JSON text, once. Models, dataclasses, dates and the like are written as pydantic does."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=to_jsonable_python)
    except (ValueError, TypeError, RecursionError) as err:
        raise ValueError(f"the function's output cannot be written as JSON: {type(err).__name__}") from err


def _encode_parts(parts: Sequence[TextPart | ImagePart]) -> str:
    if not parts:
        raise ValueError("the function's content has no parts")
    written = []
    for number, part in enumerate(parts):
        if isinstance(part, TextPart):
            written.append(f'{{"type":"input_text","text":{jsontext.encode_text(part.text)}}}')
        elif not isinstance(part, ImagePart):
            raise ValueError(f"part {number} of the function's content is a {type(part).__name__}; use TextPart or ImagePart")
        elif not part.url:
            raise ValueError(f"part {number} of the function's content is an image without a URL")
        else:
            written.append(f'{{"type":"input_image","image_url":{jsontext.encode_text(part.url)}}}')
    return "[" + ",".join(written) + "]"
