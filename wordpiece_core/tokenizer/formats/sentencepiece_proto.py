"""Messages of SentencePiece's models. `protobuf` is imported when a message is read or written, so
other files of tokenizers load without it.
"""

from __future__ import annotations

from typing import Any

UNIGRAM, BPE = 1, 2  # ModelType
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # SentencePiece.Type


def new_model() -> Any:
    """Return an empty `ModelProto`."""
    from wordpiece_core.tokenizer.formats.sentencepiece_model_pb2 import (  # type: ignore[attr-defined]
        ModelProto,
    )

    return ModelProto()


def parsed(data: bytes) -> Any:
    """Return the `ModelProto` of bytes. Raises ValueError for other bytes."""
    from google.protobuf.message import DecodeError

    model = new_model()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return model
