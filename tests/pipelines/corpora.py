"""Small corpora in every format, the command run on them, and their results in plain Python."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from pipelines.commands.cli import main
from wordpiece_core.limits import LIMITS, Limits

from .shard_files import COMPRESS

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ONE_WORKER = ("--", "--direct_running_mode=in_memory", "--direct_num_workers=1")  # the fastest
ENDINGS = (".parquet", ".txt", ".txt.gz", ".txt.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst")

SENTENCES = (
    "The quick brown fox jumps over the lazy dog, doesn't it? It's 3.14 (about $5) -- yes!",
    "Tokenization of unaffordable words: hugging, hugs, hugged; tokenizers tokenize tokens.",
    "Die Straße führt über Äcker; größere Übermaßnahmen waren unvermeidlich.",
    "L'été, le garçon naïf mangeait déjà des crêpes à Noël.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "我们在北京学习自然语言处理，很有意思。",
    "吾輩は猫である。名前はまだ無い。トークナイザー",
    "한국어 문장을 토큰으로 나눕니다.",
    "Ο Οδυσσέας έφτασε στην Ιθάκη· πού είναι;",
    "مرحبا بالعالم، كيف حالك؟",
    "नमस्ते दुनिया, क्या हाल है।",
    "İstanbul'da ılık bir gün; tiếng Việt có nhiều dấu.",
    "emoji 😀 👩\u200d👩\u200d👧 🏽 and e\u0301 accents, soft\u00adhyphen, tab\there",
    "[CLS] written by hand [SEP] [MASK] and [MASK]ed, [mask] [UNK][PAD]",
    "zero\u200bwidth \ufeff \x00null \x07bell \ufffd replacement \u2028 separator \u3000 wide",
    "a" * 120 + " " + "é" * 100 + " b" * 30,
    "",
    "   ",
)


def multilingual(rows: int, seed: int = 0) -> list[str]:
    """Return rows of words of many languages, without line ends, for every format."""
    rng = random.Random(seed)
    words = [word for sentence in SENTENCES for word in sentence.split(" ")]
    mixed = (" ".join(rng.choices(words, k=rng.randrange(30))) for _ in range(rows))
    return [*SENTENCES, *mixed][:rows]


def english(rows: int, seed: int = 0) -> list[str]:
    """Return rows of made-up words with the frequencies of a language."""
    rng = random.Random(seed)
    parts = [rng.choice("bcdfghklmnprst") + rng.choice("aeiou") for _ in range(40)]
    words = ["".join(rng.choices(parts, k=rng.randrange(1, 4))) for _ in range(600)]
    weights = [1 / rank for rank in range(1, 601)]
    return [" ".join(rng.choices(words, weights, k=rng.randrange(1, 20))) for _ in range(rows)]


# --- Files ----------------------------------------------------------------------------------------


def write_shard(path: Path, texts: Sequence[str | None], rows_per_group: int = 50) -> str:
    """Write a file of texts in the format of its ending. Parquet and JSON lines have an `id`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
        schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
        table = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(table, path, row_group_size=rows_per_group)
        return str(path)
    if ".jsonl" in path.name:
        rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    else:
        lines = [text or "" for text in texts]
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(COMPRESS[path.suffix if path.suffix in COMPRESS else ""](data))
    return str(path)


def write_shards(directory: Path, texts: Sequence[str | None], shards: int, ending: str) -> str:
    """Write a directory of shards of different sizes with the texts in order."""
    rng = random.Random(shards)
    cuts = sorted(rng.choices(range(len(texts) + 1), k=shards - 1))
    for i, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(texts)], strict=True)):
        write_shard(directory / f"{i:03}{ending}", texts[a:b])
    return str(directory)


def files_below(directory: str | Path) -> dict[str, bytes]:
    """Return the contents of all files by relative name."""
    root = Path(directory)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def same_but_for_run_json(first: Path, second: Path) -> bool:
    """Return True if two directories have the same files, except for the record of the run."""
    files = [files_below(directory) for directory in (first, second)]
    return files[0].keys() == files[1].keys() and all(
        data == files[1][name] for name, data in files[0].items() if name != "run.json"
    )


def read_json(directory: str | Path, name: str) -> dict[str, Any]:
    """Read a JSON file of a directory."""
    value: dict[str, Any] = json.loads((Path(directory) / name).read_text())
    return value


def column(shards: str | Path, name: str = "input_ids") -> list[Any]:
    """Return a column of the Parquet shards below a directory, in the order of their names."""
    paths = sorted(Path(shards).rglob("*.parquet"))
    return [
        value for path in paths for value in pq.ParquetFile(path).read([name])[name].to_pylist()
    ]


def manifest(directory: str | Path) -> dict[str, Any]:
    """Return the manifest of a dataset, or of a word table."""
    value: dict[str, Any] = json.loads(manifest_path(directory).read_text())
    return value


def manifest_path(directory: str | Path) -> Path:
    """Return the path of the manifest of a dataset, or of a word table."""
    of_dataset = Path(directory) / ".manifest.json"
    return of_dataset if of_dataset.exists() else Path(directory) / "_manifest.json"


# --- The command ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard error, without progress, which a busy machine shows every few
        seconds."""
        return [line for line in self.err.splitlines() if ": running" not in line]

    @property
    def fault(self) -> str:
        """The only line of a failed command."""
        lines = [line for line in self.err.splitlines() if line.startswith("wordpiece: ")]
        assert self.status in (1, 2), self
        assert len(lines) == 1, self.err
        assert self.err.endswith(lines[0] + "\n")
        assert "Traceback" not in self.err + self.out
        return lines[0].removeprefix("wordpiece: ")


def wordpiece(*args: str | Path, limits: Limits = LIMITS) -> Outcome:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(arg) for arg in args], limits)
        except SystemExit as done:
            status = int(done.code or 0)
    return Outcome(status, out.getvalue(), err.getvalue())


def config(directory: Path, **options: Any) -> tuple[str, str]:
    """Write a config file of these options, and return the arguments for it."""
    path = directory / "config.yaml"
    path.write_text(json.dumps(options))
    return "--config", str(path)


def done(*args: str | Path, limits: Limits = LIMITS) -> Outcome:
    """Run the command in this process. It must succeed."""
    outcome = wordpiece(*args, limits=limits)
    assert outcome.status == 0, outcome.err
    return outcome


def script() -> list[str]:
    """Return the installed command."""
    return [str(Path(sysconfig.get_path("scripts")) / "wordpiece")]


def process(*args: str | Path, **options: Any) -> Outcome:
    """Run the installed command in its own process."""
    ended = subprocess.run(
        [*script(), *map(str, args)], capture_output=True, text=True, check=False, **options
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


def train_tokenizer(directory: Path, texts: Sequence[str], *options: str) -> str:
    """Train on texts, once in this process, and return the tokenizer directory."""
    shutil.copytree(_trained(tuple(texts), options), directory / "tokenizer")
    return str(directory / "tokenizer")


@cache
def _trained(texts: tuple[str, ...], options: tuple[str, ...]) -> Path:
    directory = Path(tempfile.mkdtemp())
    shard = write_shard(directory / "train.txt", texts)
    done("train", shard, "--output", directory / "tokenizer", "--quiet", *options, *ONE_WORKER)
    return directory / "tokenizer"


# --- What plain Python makes of it ----------------------------------------------------------------


def counted(
    texts: Iterable[str | None],
    pre_tokenizer: str = "bert",
    special_tokens: Sequence[str] = tuple(SPECIAL),
    **switches: Any,
) -> list[tuple[str, int]]:
    """Return the rows of the word table of texts, by `tokenizers` and a Counter."""
    cut = WhitespaceSplit() if pre_tokenizer == "whitespace" else BertPreTokenizer()
    normalizer = BertNormalizer(**switches)
    words: Counter[str] = Counter()
    special = "|".join(map(re.escape, special_tokens)) or "(?!)"
    for part in (part for text in texts for part in re.split(special, text or "")):
        words.update(word for word, _ in cut.pre_tokenize_str(normalizer.normalize_str(part)))
    return sorted(words.items(), key=lambda row: (-row[1], row[0]))


def table_rows(directory: str | Path) -> list[tuple[str, int]]:
    """Return the rows of a word table, its parts in name order."""
    words, counts = column(directory, "word"), column(directory, "count")
    return list(zip(words, counts, strict=True))


def peer(
    vocab: Sequence[str],
    *,
    pre_tokenizer: str = "bert",
    max_word_length: int = 100,
    continuing_prefix: str = "##",
    **switches: Any,
) -> Tokenizer:
    """Return the same tokenizer, built with `tokenizers`."""
    ids = {token: i for i, token in enumerate(vocab)}
    model = WordPiece(
        ids,
        unk_token="[UNK]",
        max_input_chars_per_word=max_word_length,
        continuing_subword_prefix=continuing_prefix,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = BertNormalizer(**switches)
    whitespace = pre_tokenizer == "whitespace"
    tokenizer.pre_tokenizer = WhitespaceSplit() if whitespace else BertPreTokenizer()
    tokenizer.add_special_tokens([token for token in SPECIAL if token in ids])
    if {"[CLS]", "[SEP]"} <= ids.keys():
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]",
            special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
        )
    return tokenizer


def vocab_of(directory: str | Path) -> list[str]:
    """Return the tokens of a tokenizer directory."""
    return (Path(directory) / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]


def merges_of(directory: str | Path) -> list[dict[str, Any]]:
    """Return the log of merges in a tokenizer directory."""
    rows: list[dict[str, Any]] = pq.read_table(f"{directory}/merges.parquet").to_pylist()
    return rows


def ids_by_peer(
    tokenizer: Tokenizer, texts: Iterable[str | None], *, add_special_tokens: bool = True
) -> list[list[int] | None]:
    """Return the ids of texts by `tokenizers`; null stays null."""
    return [
        None if text is None else tokenizer.encode(text, add_special_tokens=add_special_tokens).ids
        for text in texts
    ]
