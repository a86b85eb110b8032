"""A call of the job `train`."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.counting.options import CountOptions
from pipelines.running.call import Call
from wordpiece_core.declaration import checked, group, option
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Flag, Place, Size
from wordpiece_core.options import LEAST_DRIVER_MEMORY, TrainingOptions
from wordpiece_core.training.budget import RoundBudget

DRIVER_MEMORY = 4 << 30  # bytes


@dataclass(frozen=True, kw_only=True)
class TrainCall(Call):
    """Train a WordPiece vocabulary on INPUT and write a tokenizer directory.

    INPUT is as for count; or give a word table by --word-counts.
    """

    ALTERNATIVES = (("inputs", "word_counts"),)

    word_counts: str | None = option(None, Place(), "Train on this word table, not on INPUT.")
    training: TrainingOptions = group(TrainingOptions)
    budget: RoundBudget = group(RoundBudget, driver_memory=DRIVER_MEMORY)
    work_dir: str | None = option(
        None,
        Place(),
        "Where a training that was killed goes on from.",
        shown_default="DIR of --output and .work",
    )
    keep_work: bool = option(False, Flag(), "Keep the work directory when done.")
    overwrite: bool = option(False, Flag(), "Replace a tokenizer that was trained otherwise.")
    counting: CountOptions = group(CountOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs and self.word_counts:
            raise OptionError("give either INPUT or --word-counts")
        if self.counting.group_column and self.word_counts:
            raise OptionError("--group-column: give it to the count that makes the word table")
        self.check_inputs(self.word_counts)
        memory = self.budget.driver_memory
        if memory is not None:
            checked(Size(LEAST_DRIVER_MEMORY), "driver_memory", memory)
