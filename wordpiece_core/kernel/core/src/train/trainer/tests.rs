//! Tests of the trainer against a plain loop.

use super::*;
use crate::oracle::{counted, merged};
use crate::text::marks::WordMarks;
use crate::train::run_sizes::RunSizes;
use crate::train::runs::{PairLevels, Runs};
use crate::train::splits::{PairCounter, PairCounts};
use wordpiece_testing::Random;

type CaseTable = Vec<(Vec<u32>, u64)>;

/// A training of `PREFIX` and a few characters, on a table of few and short words: ties, runs
/// of one token, and tokens that two pairs make, are common.
struct Case {
    alphabet: Vec<String>,
    prefix: &'static str,
    table: CaseTable,
    vocab_size: usize,
    max_length: usize,
    criterion: Criterion,
    min_pair_count: Option<u64>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let prefix = *random.choose(&["##", "", "#"]);
        let characters = ["a", "#", "b"];
        let mut alphabet: Vec<String> = characters.map(String::from).into();
        alphabet.extend(characters.map(|c| format!("{prefix}{c}")));
        let continuing = if prefix.is_empty() { 0 } else { 3 };
        alphabet.truncate(3 + continuing);
        let table = (0..random.below(12))
            .map(|_| {
                let symbols = [0, 0, 1, 2, OUTSIDE];
                let at = |at, symbol| match symbol {
                    OUTSIDE => OUTSIDE,
                    symbol => symbol + if at > 0 { continuing as u32 } else { 0 },
                };
                let split = (0..random.below(9)).map(|n| at(n, *random.choose(&symbols)));
                (split.collect(), 1 + random.below(6) as u64)
            })
            .collect();
        Case {
            vocab_size: alphabet.len() + random.below(14),
            alphabet,
            prefix,
            table,
            max_length: *random.choose(&[2, 4, 100]),
            criterion: *random.choose(&[
                Criterion::Pmi,
                Criterion::Likelihood,
                Criterion::Frequency,
            ]),
            min_pair_count: *random.choose(&[None, Some(1), Some(2), Some(5)]),
        }
    }

    fn tokens(&self) -> Tokens {
        Tokens::new(self.alphabet.clone(), WordMarks::Prefix(self.prefix.into()), self.max_length)
    }

    fn trainer(&self) -> Trainer {
        let Case { vocab_size, criterion, min_pair_count, .. } = *self;
        Trainer::new(
            self.tokens(),
            TrainOptions { vocab_size, criterion, min_pair_count, ties: Ties::FirstPlace },
        )
    }

    /// The merges, by their definition: count, take the best, merge.
    fn plain_merges(&self) -> Vec<Merge> {
        let (mut tokens, mut table, mut merges) = (self.tokens(), self.table.clone(), vec![]);
        let mut support = self.min_pair_count;
        while tokens.len() < self.vocab_size {
            let (unigrams, mut pairs) = counted(&table);
            pairs.retain(|(left, right), _| tokens.fits(*left, *right));
            let largest = pairs.values().map(|(count, _)| *count).max().unwrap_or(0);
            let mut least = *support.get_or_insert(largest.max(1));
            while self.min_pair_count.is_none() && least > largest.max(1) {
                least = lower_support(least);
            }
            support = Some(least);
            let total = unigrams.values().sum();
            let scored = pairs.iter().filter(|(_, (count, _))| *count >= least);
            let scored = scored.map(|(&(left, right), &(count, place))| {
                let made = |(s, n): &(Vec<u32>, u64)| {
                    (s.len() - merged(s, left, right, 0).len()) as u64 * n
                };
                let token = tokens.merged(left, right);
                let counts = Counts {
                    pair: count,
                    merges: table.iter().map(made).sum(),
                    left: unigrams[&left],
                    right: unigrams[&right],
                    merged: token.and_then(|t| unigrams.get(&t)).copied().unwrap_or(0),
                    total,
                    same: left == right,
                };
                (Score::of(self.criterion, &counts), place, counts, (left, right))
            });
            let best = scored.max_by(|a, b| a.0.compare(&b.0).then(b.1.cmp(&a.1)));
            let Some((score, _, counts, (left, right))) = best else { break };
            let token = tokens.merged(left, right);
            let token = token.unwrap_or_else(|| tokens.add(tokens.merged_string(left, right)));
            let (pair_count, left_count, right_count) = (counts.pair, counts.left, counts.right);
            let score = score.value(self.criterion);
            merges.push(Merge { left, right, token, score, pair_count, left_count, right_count });
            table.iter_mut().for_each(|(s, _)| *s = merged(s, left, right, token));
        }
        merges
    }

    /// The splits after the merges so far.
    fn splits(&self, merges: &[Merge]) -> Splits {
        let mut splits = Splits::default();
        for (rank, (split, count)) in (0..).zip(&self.table) {
            let merge = |s: Vec<u32>, m: &Merge| merged(&s, m.left, m.right, m.token);
            splits.push((rank, 0), *count, &merges.iter().fold(split.clone(), merge));
        }
        splits
    }

    /// Begins a round that holds `share` percent of all tokens.
    fn start(&self, trainer: &mut Trainer, share: u64, most: usize) {
        let (splits, mut held) = (self.splits(trainer.merges()), RoundRuns::default());
        trainer.check_splits(&splits).unwrap();
        if share == 100 {
            held.extend(&splits).unwrap();
            return trainer.start_whole_round(held).unwrap();
        }
        let mut all = PairCounter::default();
        splits.iter().for_each(|(place, n, s)| all.add_split(place, n, s).unwrap());
        let mut unigrams = vec![0; trainer.tokens().len()];
        all.unigrams.iter().for_each(|(&token, &count)| unigrams[token as usize] = count);
        let largest = trainer.largest(&all.pairs).unwrap();
        let chosen = trainer.candidates(&unigrams, &all.pairs, largest, most, None).unwrap();
        let levels = PairLevels(chosen.pairs.iter().map(|&(p, _, n)| (p, n)).collect());
        let best = chosen.pairs.iter().find(|(.., level)| *level == 0);
        let best = best.map(|&(pair, count, _)| (pair, count));
        let mut sizes = RunSizes::new(all.symbols * share / 100, chosen.max_level);
        sizes.add_splits(&splits, &levels);
        let mut runs = Runs::default();
        runs.add_splits(&splits, &levels, sizes.max_level()).unwrap();
        runs.take_sorted(3).for_each(|part| held.extend(&part).unwrap());
        trainer.start_round(held, unigrams, largest, sizes.max_level(), best).unwrap();
    }

    fn merges(&self, share: u64, most: usize, at_once: usize) -> Vec<Merge> {
        let mut trainer = self.trainer();
        loop {
            let before = trainer.merges().len();
            self.start(&mut trainer, share, most);
            let status = loop {
                match trainer.run(at_once) {
                    Status::Running => {}
                    status => break status,
                }
            };
            if status == Status::Done {
                return trainer.merges().to_vec();
            }
            assert!(trainer.merges().len() > before, "a round without a merge");
            // A trainer that takes over these merges is in the same state.
            let mut other = self.trainer();
            other.restore(trainer.merges().to_vec(), trainer.support()).unwrap();
            assert_eq!(other.tokens().strings(), trainer.tokens().strings());
        }
    }
}

#[test]
fn merges_are_those_of_a_plain_loop_under_any_budget() {
    let (mut random, mut made) = (Random::new(10), 0);
    for number in 0..1_200 {
        let case = Case::new(&mut random);
        let plain = case.plain_merges();
        for share in [100, *random.choose(&[0, 5, 20, 50, 80])] {
            let share = if case.criterion == Criterion::Likelihood { 100 } else { share };
            let (most, at_once) = (1 + random.below(6), 1 + random.below(5));
            let merges = case.merges(share, most, at_once);
            assert_eq!(merges, plain, "case {number} of {share} percent");
        }
        made += plain.len();
    }
    assert!(made > 3_000, "{made}");
}

#[test]
fn what_contradicts_itself_is_an_error_and_no_panic() {
    let mut random = Random::new(11);
    let mut refused = 0;
    for _ in 0..3_000 {
        let case = Case::new(&mut random);
        let mut trainer = case.trainer();
        let (splits, size) = (case.splits(&[]), case.alphabet.len() as u32);
        let some_token = |random: &mut Random| random.below(size as usize + 1) as u32;
        let some_count = |random: &mut Random| match random.below(4) {
            0 => i64::MAX as u64,
            _ => random.below(60) as u64,
        };
        let mut runs = RoundRuns::default();
        runs.extend(&splits).unwrap();
        let unigrams: Vec<_> = (0..size).map(|_| some_count(&mut random)).collect();
        let pairs: Vec<_> = (0..random.below(6))
            .map(|_| {
                let pair = (some_token(&mut random), some_token(&mut random));
                (pair, PairCount { count: some_count(&mut random), first: (0, 0) })
            })
            .collect();
        let (largest, max_level) = (some_count(&mut random), random.below(200) as u16);
        let best = pairs.first().copied();
        let pairs: PairCounts = pairs.into_iter().collect();
        let _ = trainer.largest(&pairs);
        let _ = trainer.candidates(&unigrams, &pairs, largest, 2, Some(max_level));
        match trainer.start_round(runs, unigrams, largest, max_level, best) {
            Ok(()) => drop(trainer.run(50)),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0);
}

#[test]
fn what_is_of_another_training_is_refused() {
    let mut random = Random::new(12);
    let case = Case { vocab_size: 99, ..Case::new(&mut random) };
    let good = Merge {
        left: 0,
        right: 1,
        token: case.alphabet.len() as u32,
        score: 1.0,
        pair_count: 1,
        left_count: 1,
        right_count: 1,
    };
    for bad in [Merge { left: 99, ..good }, Merge { right: 99, ..good }, Merge { token: 0, ..good }]
    {
        assert!(case.trainer().restore(vec![bad], 1).is_err());
    }
    case.trainer().restore(vec![good], 1).unwrap();
    let mut splits = Splits::default();
    splits.push((0, 0), 1, &[0, OUTSIDE, 1]);
    case.trainer().check_splits(&splits).unwrap();
    splits.push((1, 0), 1, &[OUTSIDE - 1]);
    assert!(case.trainer().check_splits(&splits).is_err());
}
