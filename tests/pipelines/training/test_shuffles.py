"""How much of a runner the pipeline of a cut round takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import apache_beam as beam
import pytest

from pipelines.running.plan import Plan
from pipelines.training.rounds import Exchange, RunPasses, ranges_of
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import TrainingOptions
from wordpiece_core.training.alphabet import InitialVocabulary
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.merging import Merging
from wordpiece_core.training.rounds import Pass


def passes_of(least: int | str) -> Sequence[Pass]:
    options = TrainingOptions(vocab_size=100, min_pair_count=least)
    vocabulary = InitialVocabulary(["[UNK]", "a"], [("a", 1)])
    merging = Merging(vocabulary, options, RoundBudget(), split_tokens=10, words=5)
    return merging.passes()


@pytest.mark.parametrize(("least", "shuffles"), [("auto", 5), (1, 6)])  # the second watches pairs
def test_a_cut_round_has_few_shuffles_and_waits(least: int | str, shuffles: int) -> None:
    passes = partial(passes_of, least)
    pipeline = beam.Pipeline()
    work = TrainingWork("work")
    plan = Plan("plan", work.owned.lease, [(0, 1)], ())
    exchange = Exchange("exchange", work.owned.lease)
    _ = pipeline | ranges_of(plan) | RunPasses(passes, None, exchange)
    transforms = pipeline.to_runner_api().components.transforms.values()
    kinds = Counter(transform.spec.urn for transform in transforms)
    assert kinds["beam:transform:group_by_key:v1"] == shuffles
    assert kinds["beam:transform:flatten:v1"] == 0
    waits = [len(step.inputs) - 1 for step in transforms if len(step.inputs) > 1]
    assert waits == [1] * (shuffles - 2)  # one side input each, but for the first pass
