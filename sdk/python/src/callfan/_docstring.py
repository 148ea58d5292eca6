"""Descriptions from docstrings: of the function, and of its parameters in the styles of Google and Sphinx."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?):\s*$")
_SPHINX = re.compile(r"^:(param|type|returns?|rtype|raises)\b\s*(?:[^:]*\s)?(\w*)\s*:\s*(.*)$")
_GOOGLE = re.compile(r"^(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


def parse(text: str | None) -> tuple[str, dict[str, str]]:
    """The description, and those of the parameters by name."""
    description: list[str] = []
    parameters: dict[str, str] = {}
    section, name = "", ""
    for line in inspect.cleandoc(text or "").splitlines():
        heading, sphinx = _SECTION.match(line), _SPHINX.match(line)
        indented = line.startswith((" ", "\t"))
        if heading:
            section, name = heading.group(1), ""
        elif sphinx:
            section, name = "sphinx", sphinx.group(2) if sphinx.group(1) == "param" else ""
            if name:
                parameters[name] = sphinx.group(3).strip()
        elif section and not indented and line.strip():
            section, name = "", ""
            description.append(line)
        elif section in ("Args", "Arguments", "Parameters") and (item := _GOOGLE.match(line.strip())):
            name = item.group(1)
            parameters[name] = item.group(2).strip()
        elif section and name and line.strip():
            parameters[name] = f"{parameters[name]} {line.strip()}".strip()
        elif not section:
            description.append(line.rstrip())
    return "\n".join(description).strip(), {k: v for k, v in parameters.items() if v}
