"""The kernel, the reference in plain Python, and `tokenizers`, on the same texts."""

from __future__ import annotations

from dataclasses import replace

import wordpiece_core as wp

from ..wordpiece_core.encoding_cases import (
    Case,
    by_kernel,
    by_reference,
    by_tokenizers,
    differences,
)


def faults(case: Case, threads: int) -> list[str]:
    """Yield the faults of the kernel."""
    expected = error = None
    try:
        expected = by_reference(case)
    except wp.WordpieceError as raised:
        error = raised
    try:
        found = by_kernel(case, threads)
    except wp.WordpieceError as raised:
        if error is None or type(raised) is not type(error) or "\n" in str(raised):
            return [f"raises {raised!r}, not {error!r}"]
        # `tokenizers` truncates wrongly where we raise OptionError.
        wanted = isinstance(error, wp.InputError) and case.unk_scope == "word"
        return ["tokenizers raises nothing"] if wanted and not refuses(case) else []
    if expected is None:
        return [f"does not raise {error!r}"]
    found_faults = differences(found, expected)
    if case.unk_scope == "word":
        found_faults += differences(found, by_tokenizers(case))
    return found_faults


def refuses(case: Case) -> bool:
    try:
        by_tokenizers(case)
    except BaseException as error:  # Rust panics are BaseExceptions
        return "Truncation error" in str(error) or "`stride` must be" in str(error)
    return False


def smallest(case: Case, threads: int) -> Case:
    """One text, and its pair, that shows a fault of the case; the case, if none does alone."""
    for i, text in enumerate(case.texts):
        alone = replace(case, texts=[text], pairs=case.pairs and [case.pairs[i]])
        if faults(alone, threads):
            return alone
    return case
