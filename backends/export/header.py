"""The C header of an exported library.

Invariants: valid C11 and C++17 without a warning; all it says follows from the interface.
Not here: names and the order of parameters (`interface`).
"""

from __future__ import annotations

from collections.abc import Sequence

from .interface import INSTANCE, Interface
from .serving import FIRST_PLACE, Status

MEANINGS = {
    Status.OK: "no error",
    Status.NULL: "an instance, array or name is NULL",
    Status.SIZE: "sizes are negative, too large or do not fit each other",
    Status.ROOM: "an output has too little room",
    Status.MEMORY: "memory is short",
    Status.NAME: "there is no variable or output of this name or number",
}
_TERMS = (
    " *",
    " * Arrays are in C order, without gaps, aligned as their elements are; no two of a call",
    " * overlap. Arrays the function read from outside itself are constants of the library.",
    " * An instance serves one call at a time; several instances serve several threads.",
    " */",
)


def header_text(
    interface: Interface,
    *,
    origin: str,
    features: str,
    places: Sequence[str],
    variables: Sequence[str],
) -> str:
    """The header.

    origin: the function exported, for the reader. places: sentence of each place of failure.
    variables: for each Variable its name, type and size in bytes, as text.
    """
    name, guard = interface.name, f"TRACEMILL_{interface.name.upper()}_H"
    parts = [
        f"/* {name}: {_plain(origin)}, exported by tracemill for {features}.",
        *_TERMS,
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdbool.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *_codes(name, places),
        "",
        f"typedef struct {name} {name};",
        "",
        *_lifetime(name),
        *_run(interface),
        "",
        *_output_size(interface),
        "",
        "/* The sentence of a code; never NULL. */",
        f"const char *{name}_error_message(int code);",
        "",
        *(_variables(name, variables) if variables else ()),
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
        "",
    ]
    return "\n".join(parts)


def _codes(name: str, places: Sequence[str]) -> list[str]:
    lines = [f"enum {name}_code {{"]
    lines += [
        f"    {name.upper()}_{status.name} = {status.value}, /* {meaning} */"
        for status, meaning in MEANINGS.items()
    ]
    lines.append(f"    {name.upper()}_FIRST_PLACE = {FIRST_PLACE} /* from here: in the function */")
    lines.append("};")
    for number, sentence in enumerate(places):
        lines.append(f"/* {FIRST_PLACE + number}: {_plain(sentence)} */")
    return lines


def _lifetime(name: str) -> list[str]:
    return [
        "/* A new instance; NULL if memory is short. */",
        f"{name} *{name}_create(void);",
        "",
        "/* Free an instance; NULL is allowed. */",
        f"void {name}_destroy({name} *{INSTANCE});",
        "",
    ]


def _run(interface: Interface) -> list[str]:
    told = [*(parameter.note for parameter in interface.call), *interface.remarks]
    notes = "".join(f"\n *   {_plain(note)}" for note in told)
    comment = (
        f"/* One call; 0, or the code of an error, which leaves variables as they were.{notes}\n */"
    )
    declarations = [f"{interface.name} *{INSTANCE}", *(p.declaration for p in interface.call)]
    return [*comment.split("\n"), *_function(f"int {interface.name}_run", declarations)]


def _output_size(interface: Interface) -> list[str]:
    outputs = ", ".join(f"{number} {name}" for number, name in enumerate(interface.outputs))
    declarations = [
        f"{interface.name} *{INSTANCE}",
        "int output",
        *(parameter.declaration for parameter in interface.sizes),
    ]
    return [
        f"/* Elements of an output ({outputs or 'there is none'}); minus a code on error. */",
        *_function(f"int64_t {interface.name}_output_size", declarations),
    ]


def _variables(name: str, variables: Sequence[str]) -> list[str]:
    listed = "".join(f"\n *   {_plain(variable)}" for variable in variables)
    comment = f"/* Copy a variable's whole content out, or in; size is in bytes.{listed}\n */"
    return [
        *comment.split("\n"),
        f"int {name}_get({name} *{INSTANCE}, const char *name, void *data, size_t size);",
        f"int {name}_set({name} *{INSTANCE}, const char *name, const void *data, size_t size);",
        "",
    ]


def _function(head: str, declarations: Sequence[str]) -> list[str]:
    one = f"{head}({', '.join(declarations)});"
    if len(one) <= 100:
        return [one]
    return [
        f"{head}(",
        *(f"    {text}," for text in declarations[:-1]),
        f"    {declarations[-1]});",
    ]


def _plain(text: str) -> str:
    """Text that is safe in a comment."""
    readable = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    return readable.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")
