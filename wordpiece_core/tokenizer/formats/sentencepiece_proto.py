"""The messages of `sentencepiece_model.proto`, as far as they say something about ids. Fields that
are not here are skipped in reading.

The descriptor is made here, in a pool of its own: the one that comes with `sentencepiece` asks for
one version of `protobuf`, and no pool can hold a file twice. `protobuf` is imported when a message
is read or written: other files of tokenizers load without it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

PACKAGE = "sentencepiece"
UNIGRAM, BPE = 1, 2  # ModelType
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # SentencePiece.Type

# name, number, type, default
_TRAINER = (
    *(("model_type", 3, "enum", "UNIGRAM"), ("vocab_size", 4, "int32", "8000")),
    *(("split_by_whitespace", 22, "bool", "true"),),
    *(("treat_whitespace_as_suffix", 24, "bool", "false"), ("byte_fallback", 35, "bool", "false")),
    *(("unk_id", 40, "int32", "0"), ("bos_id", 41, "int32", "1"), ("eos_id", 42, "int32", "2")),
    ("pad_id", 43, "int32", "-1"),
    *(("unk_piece", 45, "string", "<unk>"), ("bos_piece", 46, "string", "<s>")),
    *(("eos_piece", 47, "string", "</s>"), ("pad_piece", 48, "string", "<pad>")),
)
_NORMALIZER = (
    *(("name", 1, "string", ""), ("precompiled_charsmap", 2, "bytes", None)),
    *(("add_dummy_prefix", 3, "bool", "true"), ("remove_extra_whitespaces", 4, "bool", "true")),
    *(("escape_whitespaces", 5, "bool", "true"),),
)
_ENUMS = {
    "model_type": ("ModelType", {name.upper(): number for number, name in MODEL_TYPES.items()}),
    "type": (
        "Type",
        {
            **{"NORMAL": NORMAL, "UNKNOWN": UNKNOWN, "CONTROL": CONTROL},
            **{"USER_DEFINED": USER_DEFINED, "UNUSED": UNUSED, "BYTE": BYTE},
        },
    ),
}


@cache
def model_class() -> Any:
    """The class of the message `ModelProto`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="sentencepiece_model.proto", package=PACKAGE, syntax="proto2"
    )
    _add_message(file.message_type.add(), "TrainerSpec", _TRAINER)
    _add_message(file.message_type.add(), "NormalizerSpec", _NORMALIZER)
    model = file.message_type.add()
    _add_message(model, "ModelProto", ())
    piece = (
        ("piece", 1, "string", None),
        ("score", 2, "float", None),
        ("type", 3, "enum", "NORMAL"),
    )
    _add_message(model.nested_type.add(), "SentencePiece", piece, inside="ModelProto.")
    field = descriptor_pb2.FieldDescriptorProto
    parts = [("pieces", 1, "ModelProto.SentencePiece"), ("trainer_spec", 2, "TrainerSpec")]
    parts += [("normalizer_spec", 3, "NormalizerSpec"), ("denormalizer_spec", 5, "NormalizerSpec")]
    for name, number, kind in parts:
        model.field.add(
            name=name,
            number=number,
            type=field.TYPE_MESSAGE,
            label=field.LABEL_REPEATED if name == "pieces" else field.LABEL_OPTIONAL,
            type_name=f".{PACKAGE}.{kind}",
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.ModelProto"))


def parsed(data: bytes) -> Any:
    """The message `ModelProto` of bytes. ValueError if they are none."""
    from google.protobuf.message import DecodeError

    model = model_class()()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return model


def _add_message(
    message: Any,
    name: str,
    fields: tuple[tuple[str, int, str, str | None], ...],
    inside: str = "",
) -> None:
    """Fills in a message of optional fields, and the enums that they have."""
    message.name = name
    for field, number, kind, default in fields:
        added = message.field.add(name=field, number=number)
        added.label, added.type = added.LABEL_OPTIONAL, getattr(added, f"TYPE_{kind.upper()}")
        if default is not None:
            added.default_value = default
        if kind == "enum":
            enum_name, values = _ENUMS[field]
            added.type_name = f".{PACKAGE}.{inside}{name}.{enum_name}"
            enum = message.enum_type.add(name=enum_name)
            for value, value_number in values.items():
                enum.value.add(name=value, number=value_number)
