"""A function's parameters: their JSON Schema, and arguments turned into them."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, Required

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from callfan.call import Call
from callfan.errors import ConfigurationError, Failure

INVALID_ARGUMENTS = "invalid_arguments"

_typed_dict: Callable[[str, dict[str, Any]], Any] = TypedDict  # type: ignore[assignment]  # made at run time, which mypy does not know


class _Schema(GenerateJsonSchema):
    """Without the titles that pydantic makes of names: the model has no use for them."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Parameters:
    """The parameters of one Python function."""

    def __init__(self, fn: Callable[..., Any], descriptions: Mapping[str, str], *, partial: bool = False) -> None:
        self._name = getattr(fn, "__name__", "?")
        self.call_parameter: str | None = None
        fields: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        extra: typing.Literal["forbid", "allow", "ignore"] = "ignore" if partial else "forbid"
        hints = self._hints(fn)
        for name, p in inspect.signature(fn).parameters.items():
            annotation = hints.get(name, Any)
            if p.kind is p.VAR_KEYWORD:
                extra = "allow"
            elif p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
                raise self._unusable(f"the parameter {name} is positional; arguments have names")
            elif _is_call(annotation):
                self.call_parameter = name
            else:
                if p.default is p.empty:
                    fields[name] = Required[annotation]
                else:
                    fields[name] = NotRequired[annotation]
                    defaults[name] = p.default
        shape: Any = _typed_dict("Arguments", fields)
        # Strict: a text is no number. What JSON lacks, as dates, is read from texts all the same.
        shape.__pydantic_config__ = ConfigDict(extra=extra, strict=True, arbitrary_types_allowed=False)
        try:
            self._adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
            self.schema = self._adapter.json_schema(schema_generator=_Schema, mode="validation")
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError) as err:
            raise self._unusable(str(err).splitlines()[0]) from err
        self._complete(descriptions, defaults)

    def _hints(self, fn: Callable[..., Any]) -> dict[str, Any]:
        try:
            return typing.get_type_hints(inspect.unwrap(fn), include_extras=True)
        except (NameError, TypeError) as err:
            raise self._unusable(f"its type hints cannot be read: {err}; types must be known where the module is") from err

    def _unusable(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"function {self._name}: {why}; give its parameters by hand with raw=True")

    def _complete(self, descriptions: Mapping[str, str], defaults: Mapping[str, Any]) -> None:
        """Adds what a TypedDict cannot say."""
        for part in (self.schema, *self.schema.get("$defs", {}).values()):
            part.pop("title", None)
        properties = self.schema.setdefault("properties", {})
        for name, text in descriptions.items():
            if name in properties and "$ref" not in properties[name]:
                properties[name].setdefault("description", text)
        for name, value in defaults.items():
            if name in properties and "$ref" not in properties[name]:
                try:
                    written = to_jsonable_python(value)
                    json.dumps(written, allow_nan=False)
                except (ValueError, TypeError):
                    continue
                properties[name].setdefault("default", written)

    def read(self, arguments: bytes) -> dict[str, Any]:
        """The keyword arguments; a Failure that names what does not fit."""
        if arguments.strip() in (b"", b"null"):
            arguments = b"{}"
        try:
            return dict(self._adapter.validate_json(arguments))
        except ValidationError as err:
            raise Failure(f"invalid arguments: {_explain(err)}", cause=INVALID_ARGUMENTS) from None


def _is_call(annotation: Any) -> bool:
    return annotation is Call or Call in typing.get_args(annotation)


def _explain(err: ValidationError) -> str:
    """Where and why, without the values."""
    found = []
    for e in err.errors(include_url=False, include_input=False, include_context=False):
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in e["loc"]).lstrip(".")
        found.append(f"{path}: {e['msg']}" if path else e["msg"])
    return "; ".join(found[:5]) + ("; …" if len(found) > 5 else "")
