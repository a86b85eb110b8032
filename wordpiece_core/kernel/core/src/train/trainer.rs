//! The driver of training: rounds of merges, with an exact result.
//!
//! A round begins with the counts of all tokens, and with the runs that splits were divided into; with
//! all splits, if nothing was divided. The best pair is merged in the runs as long as no pair that the
//! round does not see could be better (see `threshold`). A round under a budget is of use where the best
//! pairs are common ones: for the frequency, and for pmi with a support that falls. The likelihood,
//! which depends on more counts, has rounds over all splits only.
//!
//! A round tracks only the frequent pairs that it sees (see `round`), and recounts when rarer ones
//! may be better. The rule is the same as for pairs that were divided, with
//! `Threshold::may_hide` in both places. So most pairs, which are rare, cost nothing in most merges.

mod candidates;
#[cfg(test)]
mod tests;

use foldhash::HashMap;

use crate::base::error::{Error, Result};
use crate::base::sums::add;

use crate::train::heap::HeapKey;
use crate::train::round::{LongRuns, Pair, Round, RoundRuns, UNKNOWN, contradicting_counts};
use crate::train::score::{Counts, Criterion, Score};
use crate::train::splits::{OUTSIDE, PairCount, Splits};
use crate::train::threshold::{Ladder, Threshold};
use crate::train::tokens::Tokens;

/// The options of a training.
pub struct TrainOptions {
    /// The number of tokens to train, those at the beginning included.
    pub vocab_size: usize,
    /// The criterion that ranks pairs.
    pub criterion: Criterion,
    /// The count that a pair needs to be merged, 1 at least. None: it begins high, and falls to 1 while no pair
    /// has it.
    pub min_pair_count: Option<u64>,
    /// The rule for equally good pairs.
    pub ties: Ties,
}

/// Rule for equally good pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The pair that occurs first.
    #[default]
    FirstPlace,
    /// The pair with the smaller ids: left, then right.
    SmallestIds,
}

/// A merge, as the training log has it. The counts are those before the merge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merge {
    /// The id of the left token.
    pub left: u32,
    /// The id of the right token.
    pub right: u32,
    /// The id of the token that they make.
    pub token: u32,
    /// The score of the pair.
    pub score: f64,
    /// The count of the pair.
    pub pair_count: u64,
    /// The count of the left token.
    pub left_count: u64,
    /// The count of the right token.
    pub right_count: u64,
}

/// The reason why a call of [`Trainer::run`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All merges were made that were asked for.
    Running,
    /// A pair that the round does not see may be the best. The next round needs new counts.
    RoundOver,
    /// The vocabulary is full, or no pair is left.
    Done,
}

/// The next support when no pair reaches this one, where `min_pair_count` is `auto`: fifteen
/// sixteenths of it, rounded down, but 1 at least. (benchmarks/min-pair-count.md says why.)
pub(crate) fn lower_support(support: u64) -> u64 {
    (support - support.div_ceil(16)).max(1)
}

/// Pairs are tracked down to this part of the count that matters now. With a lower number pairs are
/// recounted more often; with a higher one more pairs are held and updated.
const TRACKED_PART: u64 = 8;

/// A training: the vocabulary and the merges so far, and the round that is under way.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::WordMarks;
/// use wordpiece_core::train::{Criterion, RoundRuns, Splits, Status, Ties, Tokens, TrainOptions, Trainer};
///
/// let alphabet = ["h", "##u", "##g"].map(String::from).to_vec();
/// let tokens = Tokens::new(alphabet, WordMarks::Prefix("##".into()), 16);
/// let options = TrainOptions {
///     vocab_size: 5,
///     criterion: Criterion::Frequency,
///     min_pair_count: Some(1),
///     ties: Ties::FirstPlace,
/// };
/// let mut trainer = Trainer::new(tokens, options);
/// let mut splits = Splits::default();
/// splits.push((0, 0), 10, &[0, 1, 2]); // "hug" ten times
/// splits.push((1, 0), 5, &[0, 1]); // "hu" five times
/// trainer.check_splits(&splits).unwrap();
/// let mut runs = RoundRuns::default();
/// runs.extend(&splits).unwrap();
/// trainer.start_whole_round(runs).unwrap();
/// assert_eq!(trainer.run(100), Status::Done);
/// let tokens: Vec<&str> = trainer.tokens().strings().iter().map(|token| &**token).collect();
/// assert_eq!(tokens, ["h", "##u", "##g", "hu", "hug"]);
/// ```
pub struct Trainer {
    options: TrainOptions,
    tokens: Tokens,
    merges: Vec<Merge>,
    /// The count that makes a pair eligible now; 0 before the first round of a falling support.
    support: u64,
    round: Round,
    /// The rule for the pairs that the round sees.
    threshold: Threshold,
    /// The number of merges of the round.
    round_merges: usize,
}

/// A pair that a round may leave whole, its counts, and its level (see `threshold`).
pub type Candidate = ((u32, u32), PairCount, u16);

/// The pairs that a round may leave whole.
pub struct Candidates {
    /// The pairs, ordered by the ids of their tokens.
    pub pairs: Vec<Candidate>,
    /// All pairs up to this level are among them. A round may have no higher `max_level`.
    pub max_level: u16,
}

impl Trainer {
    /// A training at its beginning. `tokens`: the special tokens and the alphabet.
    pub fn new(tokens: Tokens, options: TrainOptions) -> Self {
        let min_pair_count = options.min_pair_count.map(|count| count.max(1));
        let options = TrainOptions { min_pair_count, ..options };
        let support = min_pair_count.unwrap_or(0);
        let (merges, round) = (Vec::new(), Round::default());
        Trainer {
            options,
            tokens,
            merges,
            support,
            round,
            threshold: Threshold::HIDES_NONE,
            round_merges: 0,
        }
    }

    /// Sets how many tokens are to be trained, those at the beginning included. A training that had
    /// reached its size continues with a new round.
    pub fn set_vocab_size(&mut self, vocab_size: usize) {
        self.options.vocab_size = vocab_size;
    }

    /// The tokens so far.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Return the least count of an eligible pair; 0 if it falls during training, before the start.
    pub fn support(&self) -> u64 {
        self.support
    }

    /// The merges so far.
    pub fn merges(&self) -> &[Merge] {
        &self.merges
    }

    /// Takes over a round that another trainer of the same training has made: its merges, and the
    /// support after it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the merges do not continue this training.
    pub fn restore(&mut self, merges: Vec<Merge>, support: u64) -> Result<()> {
        for merge in merges {
            self.tokens.check([merge.left, merge.right])?;
            let (token, _) = self.token_of(merge.left, merge.right);
            if token != merge.token {
                return Err(Error::data("the merges are not of this training"));
            }
            self.merges.push(merge);
        }
        self.support = support;
        Ok(())
    }

    /// The token that a pair makes, and whether it was known. A new one is added.
    fn token_of(&mut self, left: u32, right: u32) -> (u32, bool) {
        match self.tokens.merged(left, right) {
            Some(known) => (known, true),
            None => (self.tokens.add(self.tokens.merged_string(left, right)), false),
        }
    }

    /// Checks splits that come from outside, before they are used.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if one of their symbols is neither a token nor `OUTSIDE`.
    pub fn check_splits(&self, splits: &Splits) -> Result<()> {
        self.tokens.check(splits.symbols.iter().copied().filter(|&symbol| symbol != OUTSIDE))
    }

    /// Begins a round over all splits. They must have been checked by [`Trainer::check_splits`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`] if there are more than 2^63 - 1 tokens.
    pub fn start_whole_round(&mut self, runs: RoundRuns) -> Result<()> {
        self.new_round(runs);
        self.round.unigrams = self.round.count_unigrams();
        let largest = self.round.largest_count(&self.tokens);
        self.begin(largest)?;
        self.set_threshold(Threshold::HIDES_NONE, largest);
        Ok(())
    }

    /// Begins a round over the runs that splits were divided into.
    ///
    /// # Arguments
    ///
    /// * `runs` - The runs. They must have been checked by [`Trainer::check_splits`].
    /// * `unigrams` - By token, its count over the whole corpus.
    /// * `largest` - The largest count of a pair that makes a token which is short enough.
    /// * `max_level` - The highest level of the pairs that the splits were not divided at.
    /// * `best` - The best of all pairs, and its count. None: no pair is left.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] or [`Error::Overflow`] if the arguments contradict each other (merging
    /// relies on it that they do not), and [`Error::Option`] if there is no such level, or for the
    /// likelihood.
    ///
    /// # Panics
    ///
    /// Panics if a token has no count.
    pub fn start_round(
        &mut self,
        runs: RoundRuns,
        unigrams: Vec<u64>,
        largest: u64,
        max_level: u16,
        best: Option<((u32, u32), PairCount)>,
    ) -> Result<()> {
        self.check_criterion()?;
        self.check_pairs(&unigrams, best.iter().map(|(pair, count)| (pair, count)))?;
        self.new_round(runs);
        let held = self.round.count_unigrams();
        if held.iter().zip(&unigrams).any(|(held, all)| held > all) {
            return Err(contradicting_counts());
        }
        self.round.unigrams = unigrams;
        self.round.best = best.map(|(pair, _)| pair);
        self.begin(largest)?;
        if best.is_none() {
            self.set_threshold(Threshold::HIDES_NONE, largest); // nothing is left to merge
        } else {
            let ladder = self.ladder(largest);
            if max_level > ladder.max_level() {
                return Err(Error::option(format!("there is no threshold of level {max_level}")));
            }
            self.set_threshold(ladder.threshold(max_level), largest);
        }
        match self.round.best {
            Some(best) if !self.round.index.contains_key(&best) => {
                Err(Error::data("the best pair is in none of the runs, or too long"))
            }
            _ => Ok(()),
        }
    }

    /// Fails for the likelihood, whose scores also depend on how often pairs overlap themselves.
    fn check_criterion(&self) -> Result<()> {
        match self.options.criterion {
            Criterion::Likelihood => {
                Err(Error::option("criterion: likelihood needs rounds over all words"))
            }
            _ => Ok(()),
        }
    }

    /// Return an error if pairs from outside have unknown tokens, or their counts contradict the counts of
    /// the tokens.
    fn check_pairs<'a>(
        &self,
        unigrams: &[u64],
        mut pairs: impl Iterator<Item = (&'a (u32, u32), &'a PairCount)>,
    ) -> Result<()> {
        pairs.try_for_each(|(&(left, right), pair)| {
            self.tokens.check([left, right])?;
            let least = unigrams[left as usize].min(unigrams[right as usize]);
            if pair.count <= least { Ok(()) } else { Err(contradicting_counts()) }
        })
    }

    /// Puts a new round in the place of the old one. All its counts are 0.
    fn new_round(&mut self, runs: RoundRuns) {
        self.round = Round::new(runs);
        (0..self.tokens.len()).for_each(|_| self.round.add_token());
        self.round_merges = 0;
    }

    /// Begins a round whose tokens are counted. `largest`: the largest count of a pair.
    fn begin(&mut self, largest: u64) -> Result<()> {
        for (floor, &count) in self.round.floors.iter_mut().zip(&self.round.unigrams) {
            *floor = lower_bound(count);
            self.round.total = add(self.round.total, count)?;
        }
        self.support = self.support_for(largest);
        Ok(())
    }

    /// Sets the threshold of the round, and tracks the pairs that it sees. `largest`: the largest count of a
    /// pair.
    fn set_threshold(&mut self, threshold: Threshold, largest: u64) {
        self.threshold = threshold;
        self.track(match self.options.criterion {
            Criterion::Pmi => self.support / TRACKED_PART,
            _ => largest / TRACKED_PART,
        });
    }

    /// The count below which no pair is ever eligible.
    fn least(&self) -> u64 {
        self.options.min_pair_count.unwrap_or(1)
    }

    /// The support at which a pair is eligible, if the largest count is this.
    fn support_for(&self, largest: u64) -> u64 {
        if self.options.min_pair_count.is_some() {
            return self.support;
        }
        let mut support = if self.support == 0 { largest.max(1) } else { self.support };
        while support > largest.max(1) {
            support = lower_support(support);
        }
        support
    }

    /// The thresholds of the next round.
    fn ladder(&self, largest: u64) -> Ladder {
        let support = self.support_for(largest);
        Ladder::new(self.options.criterion, self.least(), support, largest)
    }

    // --- Merging ---------------------------------------------------------------------------------

    /// Makes up to `most` merges, each of the best pair. Returns why it has stopped.
    pub fn run(&mut self, most: usize) -> Status {
        let status = self.merge_best(most);
        if status != Status::Running {
            self.round = Round::default();
        }
        status
    }

    fn merge_best(&mut self, most: usize) -> Status {
        for _ in 0..most {
            if self.tokens.len() >= self.options.vocab_size {
                return Status::Done;
            }
            let Some((pair, score)) = self.best_pair() else {
                return if self.sees_all(self.least()) { Status::Done } else { Status::RoundOver };
            };
            // The best pair of all is known when a round begins, so its first merge is certain.
            let uncertain = self.may_be_beaten_beyond(&self.threshold, &score);
            if uncertain && self.round_merges > 0 {
                return Status::RoundOver;
            }
            let known = self.merge(pair, score);
            if uncertain || (known && !self.sees_everything()) {
                return Status::RoundOver;
            }
        }
        Status::Running
    }

    fn may_be_beaten_beyond(&self, threshold: &Threshold, score: &Score) -> bool {
        threshold.may_hide(score, self.options.criterion, self.support, self.round.total)
    }

    fn sees_everything(&self) -> bool {
        self.threshold == Threshold::HIDES_NONE
    }

    /// Return true if the round sees every pair that is eligible at a support.
    fn sees_all(&self, support: u64) -> bool {
        self.threshold.least_count <= support && self.threshold.most_tokens == u64::MAX
    }

    /// Return the eligible pair with the highest score that the round sees; `Ties` decides between equal
    /// scores. Lower a falling support until there is a pair, and track rarer pairs when one of them may be
    /// better.
    fn best_pair(&mut self) -> Option<(u32, Score)> {
        if self.round_merges == 0
            && let Some(best) = self.round.best
        {
            let at = self.round.index[&best];
            return Some((at, self.score(at)));
        }
        loop {
            let tracked = Threshold { least_count: self.round.tracked, ..Threshold::HIDES_NONE };
            match self.best_in_heap() {
                Some(best)
                    if self.tracks_all() || !self.may_be_beaten_beyond(&tracked, &best.1) =>
                {
                    return Some(best);
                }
                None if self.support >= self.round.tracked || self.tracks_all() => {
                    if !self.try_lower_support() {
                        return None;
                    }
                }
                _ => {
                    let falling = self.options.min_pair_count.is_none();
                    let matters = if falling { self.support } else { u64::MAX };
                    self.track(self.round.tracked.min(matters) / TRACKED_PART);
                }
            }
        }
    }

    /// Return true if all pairs that the round sees and that may become eligible are tracked.
    fn tracks_all(&self) -> bool {
        self.round.tracked <= self.least_tracked()
    }

    /// The count below which no pair need ever be tracked.
    fn least_tracked(&self) -> u64 {
        self.threshold.least_count.max(self.least())
    }

    /// Lowers a falling support when no pair reaches it. Returns false if it cannot fall: because it is
    /// the lowest, or because pairs that were divided may reach it.
    fn try_lower_support(&mut self) -> bool {
        let fixed = self.options.min_pair_count.is_some();
        if fixed || self.support <= 1 || !self.sees_all(self.support) {
            return false;
        }
        self.support = lower_support(self.support);
        self.fill_heap();
        true
    }

    /// Recount the pairs of the runs, down to `count`, or to the count below which pairs are not needed.
    fn track(&mut self, count: u64) {
        let least = count.max(self.least_tracked());
        self.round.track(least, &self.tokens, self.options.criterion);
        self.fill_heap();
    }

    /// Puts every pair that is eligible into the heap.
    fn fill_heap(&mut self) {
        for pair in 0..self.round.pairs.len() as u32 {
            if !self.round.heap.contains(pair) {
                self.update_key(pair);
            }
        }
    }

    /// Gives a pair its place in the heap after its counts, or its tokens', have changed.
    fn update_key(&mut self, at: u32) {
        let pair = &self.round.pairs[at as usize];
        if pair.count < self.support.max(1) {
            self.round.heap.remove(at);
            return;
        }
        let mut counts = self.counts(pair);
        // Each merge takes one or two of these tokens, so their counts are at least this large.
        let least = counts.merges * if counts.same { 2 } else { 1 };
        counts.left = self.round.floors[pair.left as usize].max(least);
        counts.right = self.round.floors[pair.right as usize].max(least);
        let bound = Score::bound(self.options.criterion, &counts);
        let first = match self.options.ties {
            Ties::FirstPlace => pair.first,
            Ties::SmallestIds => pair.left,
        };
        self.round.heap.set(at, HeapKey { bound, first });
    }

    /// Return the current counts for the score of a pair. Counts that only the likelihood needs are zero for
    /// other criteria.
    fn counts(&self, pair: &Pair) -> Counts {
        let likelihood = self.options.criterion == Criterion::Likelihood;
        let merged = (pair.merged_token != UNKNOWN).then_some(pair.merged_token as usize);
        Counts {
            pair: pair.count,
            merges: if likelihood { self.round.merges(pair) } else { 0 },
            left: self.round.unigrams[pair.left as usize],
            right: self.round.unigrams[pair.right as usize],
            merged: merged.map_or(0, |token| self.round.unigrams[token]),
            total: self.round.total,
            same: pair.left == pair.right,
        }
    }

    /// Return the current score of a pair.
    fn score(&self, at: u32) -> Score {
        Score::of(self.options.criterion, &self.counts(&self.round.pairs[at as usize]))
    }

    /// Returns the best eligible pair that is tracked, and of equally good pairs the one of `Ties`.
    fn best_in_heap(&mut self) -> Option<(u32, Score)> {
        let mut best: Option<(u32, Score)> = None;
        let mut places: HashMap<u32, (u32, u32)> = HashMap::default();
        let mut long = LongRuns::default();
        let mut place = |at: u32| {
            let pair = &self.round.pairs[at as usize];
            match self.options.ties {
                Ties::SmallestIds => (pair.left, pair.right),
                Ties::FirstPlace => {
                    *places.entry(at).or_insert_with(|| self.round.locate(pair, &mut long))
                }
            }
        };
        self.round.heap.walk(|key, at| {
            let Some((champion, champion_score)) = best else {
                best = Some((at, self.score(at)));
                return true;
            };
            let order = key.bound.compare(&champion_score);
            if order.is_lt() || (order.is_eq() && key.first > place(champion).0) {
                return false;
            }
            let score = self.score(at);
            let order = score.compare(&champion_score);
            if order.is_gt() || (order.is_eq() && place(at) < place(champion)) {
                best = Some((at, score));
            }
            true
        });
        for (at, (run, _)) in places {
            if std::mem::replace(&mut self.round.pairs[at as usize].first, run) != run {
                self.update_key(at);
            }
        }
        best
    }

    /// Merges a pair; returns whether its token was known.
    fn merge(&mut self, at: u32, score: Score) -> bool {
        let pair = &self.round.pairs[at as usize];
        let (left, right) = (pair.left, pair.right);
        let counts = self.counts(pair);
        let (token, known) = self.token_of(left, right);
        if !known {
            self.round.add_token();
        }
        self.merges.push(Merge {
            left,
            right,
            token,
            score: score.value(self.options.criterion),
            pair_count: counts.pair,
            left_count: counts.left,
            right_count: counts.right,
        });
        self.round_merges += 1;
        let criterion = self.options.criterion;
        let changed = self.round.apply(at, token, known, &self.tokens, criterion);
        if known {
            for token in [left, right, token].map(|token| token as usize) {
                self.round.floors[token] = lower_bound(self.round.unigrams[token]);
            }
            if self.sees_everything() {
                self.track(self.round.tracked);
            }
        } else {
            self.update_keys(&changed, [left, right, token]);
        }
        known
    }

    /// After a merge: new keys for the pairs whose counts changed, and for all pairs of a token
    /// whose count has left its bounds.
    fn update_keys(&mut self, changed: &[u32], [left, right, token]: [u32; 3]) {
        self.round.floors[token as usize] = lower_bound(self.round.unigrams[token as usize]);
        if self.options.criterion == Criterion::Likelihood {
            self.note_merged_token(token);
        }
        for &at in changed {
            if !self.round.forget_if_rare(at) {
                self.update_key(at);
            }
        }
        if self.options.criterion == Criterion::Frequency {
            return;
        }
        for token in [left, right] {
            let count = self.round.unigrams[token as usize];
            if count < self.round.floors[token as usize] {
                self.round.floors[token as usize] = lower_bound(count);
                let mut pairs = std::mem::take(&mut self.round.of_token[token as usize]);
                pairs.retain(|&pair| self.round.pairs[pair as usize].count > 0);
                pairs.iter().for_each(|&pair| self.update_key(pair));
                self.round.of_token[token as usize] = pairs;
            }
        }
    }

    /// After a merge has made a new token: notes it with the other pairs that make the same token, whose
    /// gain depends on its count, and notes with the new pairs which known token they make.
    fn note_merged_token(&mut self, token: u32) {
        let text = self.tokens.strings()[token as usize].clone();
        for (at, _) in text.char_indices().skip(1) {
            let left = self.tokens.id(&text[..at]);
            let right = self.tokens.id(&format!("{}{}", self.tokens.prefix(), &text[at..]));
            let (Some(left), Some(right)) = (left, right) else { continue };
            if let Some(&pair) = self.round.index.get(&(left, right)) {
                self.round.pairs[pair as usize].merged_token = token;
                self.update_key(pair);
            }
        }
        for pair in std::mem::take(&mut self.round.of_token[token as usize]) {
            let (left, right) = {
                let pair = &self.round.pairs[pair as usize];
                (pair.left, pair.right)
            };
            let merged = self.tokens.merged(left, right).unwrap_or(UNKNOWN);
            self.round.pairs[pair as usize].merged_token = merged;
            self.round.of_token[token as usize].push(pair);
        }
    }
}

/// The lower bound of the count of a token with which keys are computed. It is exact for small counts,
/// and one sixteenth less for large ones, so that the pairs of a token get new keys each time its
/// count has fallen by a sixteenth.
fn lower_bound(count: u64) -> u64 {
    count - count / 16
}
