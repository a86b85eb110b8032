//! The state of a round: runs of tokens that shrink as pairs are merged, and the counts of the pairs
//! in them that occur often enough to matter.
//!
//! A merge costs no more than the runs that hold its pair cost. For every tracked pair there is a
//! list of the runs that hold it. The neighbours of the merged pair are added up in arrays indexed by
//! token, without a hash table. Only new pairs that occur often enough are
//! stored. The counts of the others are found again, by one pass over all runs, when they matter
//! (`Round::track`).

use std::ops::Range;

use foldhash::HashMap;

use crate::base::error::{Error, Result};
use crate::base::prefetch::prefetch;
use crate::base::sums::add;
use crate::base::threads::{available_threads, in_threads};
use crate::train::heap::PairHeap;
use crate::train::score::Criterion;
use crate::train::splits::{OUTSIDE, Place, Splits, adjacent, pair_hash};
use crate::train::tokens::Tokens;

/// Marks removed symbols at the end of a run that has shrunk.
const REMOVED: u32 = u32::MAX - 1;

/// The runs of a round, in the order of their places. A run is named by the index where it begins, so
/// that a merge reads one place in memory for each run.
#[derive(Default)]
pub struct RoundRuns {
    /// For each run how many symbols it has, the lower and the upper half of its count, its symbols,
    /// and [`REMOVED`] for each symbol by which it has shrunk.
    words: Vec<u32>,
    /// The place of the last run.
    last: Option<Place>,
    /// The sum of the counts of all tokens.
    tokens: u64,
}

/// About how many words of runs a thread takes at least.
const PART: usize = if cfg!(test) { 16 } else { 1 << 16 };
/// The most threads: each has a sketch of its own.
const MOST_PARTS: usize = 4;
/// The number of 32-bit words before the symbols of a run.
const HEAD: usize = 3;
/// Prefetch distance in runs: merging this many takes about one memory latency.
const AHEAD: usize = 8;

impl RoundRuns {
    /// Append runs, whose places must be after the places of earlier runs. All tokens together are
    /// counted here, so that no other sum of a round can overflow.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if the symbols, and three words for each run, would be about 2^32 or
    /// more, [`Error::Data`] if the runs are not in order, and [`Error::Overflow`] if there are more
    /// than 2^63 - 1 tokens.
    pub fn extend(&mut self, runs: &Splits) -> Result<()> {
        let words = runs.symbols.len() + HEAD * runs.len();
        if self.words.len() + words >= REMOVED as usize {
            let message = "more than 2^32 tokens in a round; lower its budget";
            return Err(Error::option(message));
        }
        if self.words.capacity() - self.words.len() < words {
            let more = words.max(self.words.len() / 8);
            self.words.reserve_exact(more);
        }
        for (first, count, symbols) in runs.iter() {
            if self.last.is_some_and(|last| last >= first) {
                return Err(Error::data("splits out of order"));
            }
            let tokens = symbols.iter().filter(|&&symbol| symbol != OUTSIDE).count() as u64;
            self.tokens = add(self.tokens, count.checked_mul(tokens).ok_or(Error::Overflow)?)?;
            self.last = Some(first);
            self.words.extend([symbols.len() as u32, count as u32, (count >> 32) as u32]);
            self.words.extend_from_slice(symbols);
        }
        Ok(())
    }

    /// The runs, their counts and their symbols.
    fn iter(&self) -> impl Iterator<Item = (u32, u64, &[u32])> {
        self.iter_in(0..self.words.len())
    }

    /// Iterate over the runs in a range, which begins and ends at the bounds of runs.
    fn iter_in(&self, range: Range<usize>) -> impl Iterator<Item = (u32, u64, &[u32])> {
        let words = &self.words[..range.end];
        let mut at = range.start;
        std::iter::from_fn(move || {
            while *words.get(at)? == REMOVED {
                at += 1;
            }
            let run = at as u32; // it fits, as checked in `extend`
            let symbols = self.symbols(run);
            at += HEAD + symbols.len();
            Some((run, self.count(run), symbols))
        })
    }

    /// Close the gaps after runs that have shrunk, and drop runs without pairs. The order of the other
    /// runs stays; their indices change. Return the ranges of about equal parts: one for each useful thread,
    /// and at least one.
    fn compact(&mut self) -> Vec<Range<usize>> {
        let (mut read, mut write) = (0, 0);
        let mut starts = vec![0]; // of runs, at least `PART` words apart
        while read < self.words.len() {
            let length = self.words[read];
            if length == REMOVED {
                read += 1;
                continue;
            }
            let end = read + HEAD + length as usize;
            if length > 1 {
                if starts.last().is_some_and(|last| last + PART <= write) {
                    starts.push(write);
                }
                self.words.copy_within(read..end, write);
                write += end - read;
            }
            read = end;
        }
        self.words.truncate(write);
        let parts = available_threads().min(starts.len()).min(MOST_PARTS);
        let starts = (0..parts).map(|part| starts[part * starts.len() / parts]);
        let ends = starts.clone().skip(1).chain([write]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    fn count(&self, run: u32) -> u64 {
        let [low, high] = [1, 2].map(|half| self.words[run as usize + half] as u64);
        high << 32 | low
    }

    fn symbols(&self, run: u32) -> &[u32] {
        let start = run as usize + HEAD;
        &self.words[start..start + self.words[run as usize] as usize]
    }

    /// The index in a run of the first occurrence of a pair. `long`: what was looked up in the same runs
    /// before.
    fn position(&self, run: u32, pair: (u32, u32), long: &mut LongRuns) -> Option<u32> {
        let symbols = self.symbols(run);
        if symbols.len() <= LONG {
            let two = symbols.windows(2);
            return two.zip(0..).find(|(two, _)| (two[0], two[1]) == pair).map(|(_, at)| at);
        }
        let firsts = long.firsts.entry(run).or_insert_with(|| {
            let mut firsts = HashMap::default();
            for (at, two) in (0..).zip(symbols.windows(2)) {
                firsts.entry((two[0], two[1])).or_insert(at);
            }
            firsts
        });
        firsts.get(&pair).copied()
    }
}

/// The most symbols of a run that is searched again for each pair.
const LONG: usize = 256;

/// The first places of pairs in long runs: each run is scanned once for all its pairs. Valid until a pair
/// is merged.
#[derive(Default)]
pub(crate) struct LongRuns {
    firsts: HashMap<u32, HashMap<(u32, u32), u32>>,
}

/// A pair that is tracked: its count is exact.
pub(crate) struct Pair {
    /// The left token.
    pub left: u32,
    /// The right token.
    pub right: u32,
    /// The count of the pair; 0 if it is no longer tracked.
    pub count: u64,
    /// Lower bound on the first run with the pair.
    pub first: u32,
    /// The token that it makes, if that is known already; else `UNKNOWN`. It is kept for the likelihood
    /// alone.
    pub merged_token: u32,
    /// The runs that hold it, and some that held it once, ascending.
    runs: Vec<u32>,
}

/// An unknown token or pair.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// The runs of a round, and the counts of tokens and of pairs.
#[derive(Default)]
pub(crate) struct Round {
    /// The runs.
    pub runs: RoundRuns,
    /// By token, its count over the whole corpus.
    pub unigrams: Vec<u64>,
    /// The number of tokens in the corpus.
    pub total: u64,
    /// By token, a lower bound of its count, with which the keys of its pairs are computed.
    pub floors: Vec<u64>,
    /// The pairs that are or were tracked. Their indices are their numbers.
    pub pairs: Vec<Pair>,
    /// The number of each tracked pair.
    pub index: HashMap<(u32, u32), u32>,
    /// By token, the numbers of its pairs. Some may no longer be tracked.
    pub of_token: Vec<Vec<u32>>,
    /// The tracked pairs that are eligible.
    pub heap: PairHeap,
    /// All pairs of the runs with this count or a larger one are tracked; of others, only `best`.
    pub tracked: u64,
    /// The best of all pairs at the beginning of the round.
    pub best: Option<(u32, u32)>,
    /// The number of merges of each token with itself (`a a a`: one). Only for the likelihood.
    self_merges: HashMap<u32, u64>,
    neighbours: Neighbours,
}

impl Round {
    /// A round that holds these runs. It has no tokens yet.
    pub fn new(runs: RoundRuns) -> Self {
        Round { runs, ..Round::default() }
    }

    /// Adds the token with the next id. Its count is 0.
    pub(crate) fn add_token(&mut self) {
        self.unigrams.push(0);
        self.floors.push(0);
        self.of_token.push(Vec::new());
        self.neighbours.before.add_token();
        self.neighbours.after.add_token();
    }

    /// The counts of tokens in the runs.
    pub(crate) fn count_unigrams(&self) -> Vec<u64> {
        let mut unigrams = vec![0; self.unigrams.len()];
        for (_, count, symbols) in self.runs.iter() {
            for &symbol in symbols.iter().filter(|&&symbol| symbol != OUTSIDE) {
                unigrams[symbol as usize] += count;
            }
        }
        unigrams
    }

    /// The largest count of a pair in the runs that makes a token which is short enough.
    pub(crate) fn largest_count(&self, tokens: &Tokens) -> u64 {
        let mut counts: HashMap<(u32, u32), u64> = HashMap::default();
        for (_, count, symbols) in self.runs.iter() {
            for pair in adjacent(symbols) {
                *counts.entry(pair).or_default() += count;
            }
        }
        let fitting = counts.into_iter().filter(|((left, right), _)| tokens.fits(*left, *right));
        fitting.map(|(_, count)| count).max().unwrap_or(0)
    }

    /// Recount the pairs of the runs.
    ///
    /// # Arguments
    ///
    /// * `least` - Pairs are tracked if they occur so often, and make a token that is short enough.
    /// * `tokens` - All tokens.
    /// * `criterion` - What ranks pairs: the likelihood needs more counts than the others.
    pub(crate) fn track(&mut self, least: u64, tokens: &Tokens, criterion: Criterion) {
        let parts = self.runs.compact();
        let sketch = (least > 1).then(|| Sketch::of(&self.runs, &parts, self.total / least));
        self.pairs = Vec::new();
        self.index = HashMap::default();
        self.heap = PairHeap::default();
        self.self_merges = HashMap::default();
        self.tracked = least;
        let may_be_tracked = |pair: (u32, u32)| {
            let may_be_frequent = sketch.as_ref().is_none_or(|sketch| sketch.limit(pair) >= least);
            (may_be_frequent || self.best == Some(pair)) && tokens.fits(pair.0, pair.1)
        };
        let found = on_parts(&parts, |part| PairsOfPart::of(&self.runs, part, may_be_tracked));
        let found = found.into_iter().reduce(PairsOfPart::followed_by);
        self.pairs = found.unwrap_or_default().pairs;
        if criterion == Criterion::Likelihood {
            for (_, count, symbols) in self.runs.iter() {
                change_self_merges(&mut self.self_merges, symbols, |sum, n| *sum += n * count);
            }
        }
        let best = self.best;
        self.pairs.retain(|p| p.count >= least || best == Some((p.left, p.right)));
        self.index = HashMap::default();
        self.of_token.iter_mut().for_each(Vec::clear);
        for at in 0..self.pairs.len() as u32 {
            let Pair { left, right, .. } = self.pairs[at as usize];
            self.enter(at, (left, right));
            if criterion == Criterion::Likelihood {
                self.pairs[at as usize].merged_token =
                    tokens.merged(left, right).unwrap_or(UNKNOWN);
            }
        }
    }

    /// Enters a pair into the index and the lists of its tokens.
    fn enter(&mut self, at: u32, (left, right): (u32, u32)) {
        self.index.insert((left, right), at);
        self.of_token[left as usize].push(at);
        if left != right {
            self.of_token[right as usize].push(at);
        }
    }

    /// Return the number of merges of a pair. Exact only for the likelihood.
    pub fn merges(&self, pair: &Pair) -> u64 {
        let same = pair.left == pair.right;
        if same { self.self_merges.get(&pair.left).copied().unwrap_or(0) } else { pair.count }
    }

    /// The first occurrence of a pair: the run, and how many symbols are before it there. `long`: what
    /// was looked up since the last merge.
    ///
    /// # Panics
    ///
    /// Panics if no run holds the pair.
    pub(crate) fn locate(&self, pair: &Pair, long: &mut LongRuns) -> (u32, u32) {
        let from = pair.runs.partition_point(|&run| run < pair.first);
        let mut runs = pair.runs[from..].iter();
        let found = runs
            .find_map(|&run| Some((run, self.runs.position(run, (pair.left, pair.right), long)?)));
        found.expect("a tracked pair occurs")
    }

    /// Replaces a pair by the token that it makes, in all runs. Returns the numbers of the pairs whose
    /// counts have changed, and of new pairs.
    ///
    /// # Arguments
    ///
    /// * `at` - The number of the pair.
    /// * `token` - The token that it makes.
    /// * `known` - Whether the token was known before. Then the counts of pairs do not change and
    ///   must be recounted, and no pairs are returned.
    /// * `tokens` - All tokens.
    /// * `criterion` - What ranks pairs.
    pub(crate) fn apply(
        &mut self,
        at: u32,
        token: u32,
        known: bool,
        tokens: &Tokens,
        criterion: Criterion,
    ) -> Vec<u32> {
        let pair = &mut self.pairs[at as usize];
        let (left, right) = (pair.left, pair.right);
        let runs = std::mem::take(&mut pair.runs);
        let mut merged = 0;
        let track_self = criterion == Criterion::Likelihood && !known;
        let mut neighbours = std::mem::take(&mut self.neighbours);
        for (at, &run) in runs.iter().enumerate() {
            if let Some(&ahead) = runs.get(at + AHEAD) {
                prefetch(&self.runs.words[ahead as usize]);
            }
            let count = self.runs.count(run);
            let sums = &mut self.self_merges;
            if track_self {
                change_self_merges(sums, self.runs.symbols(run), |sum, n| *sum -= n * count);
            }
            merged += count * rewrite(&mut self.runs, run, [left, right], token, &mut neighbours);
            if track_self {
                change_self_merges(sums, self.runs.symbols(run), |sum, n| *sum += n * count);
            }
        }
        self.unigrams[left as usize] -= merged;
        self.unigrams[right as usize] -= merged;
        self.unigrams[token as usize] += merged;
        self.total -= merged;
        let changed =
            if known { Vec::new() } else { self.change_pairs(at, token, &mut neighbours, tokens) };
        neighbours.clear();
        self.neighbours = neighbours;
        changed
    }

    /// Subtracts the pairs that the merges have broken from their counts, and enters the new ones.
    /// Returns the numbers of all these pairs.
    fn change_pairs(
        &mut self,
        at: u32,
        token: u32,
        neighbours: &mut Neighbours,
        tokens: &Tokens,
    ) -> Vec<u32> {
        let Pair { left, right, .. } = self.pairs[at as usize];
        let mut changed = Vec::new();
        self.pairs[at as usize].count = 0;
        changed.push(at);
        for &other in &neighbours.before.tokens {
            self.subtract((other, left), neighbours.before.counts[other as usize], &mut changed);
        }
        for &other in &neighbours.after.tokens {
            self.subtract((right, other), neighbours.after.counts[other as usize], &mut changed);
        }
        self.subtract((right, left), neighbours.between, &mut changed);
        self.enter_new_pairs(&mut neighbours.before, |other| (other, token), tokens, &mut changed);
        self.enter_new_pairs(&mut neighbours.after, |other| (token, other), tokens, &mut changed);
        if neighbours.between >= self.tracked && tokens.fits(token, token) {
            let new = self.new_pair((token, token), neighbours.between, &mut changed) as usize;
            neighbours.between_runs.iter().for_each(|&run| self.pairs[new].note(run));
        }
        changed
    }

    fn subtract(&mut self, pair: (u32, u32), count: u64, changed: &mut Vec<u32>) {
        if count > 0
            && let Some(&at) = self.index.get(&pair)
            && self.pairs[at as usize].count > 0
        {
            self.pairs[at as usize].count -= count;
            changed.push(at);
        }
    }

    /// Enters the pairs of the new token on one side that occur often enough.
    fn enter_new_pairs(
        &mut self,
        side: &mut Side,
        pair: impl Fn(u32) -> (u32, u32),
        tokens: &Tokens,
        changed: &mut Vec<u32>,
    ) {
        for &other in &side.tokens {
            let (count, pair) = (side.counts[other as usize], pair(other));
            let enters = count >= self.tracked && tokens.fits(pair.0, pair.1);
            side.slots[other as usize] =
                if enters { self.new_pair(pair, count, changed) } else { UNKNOWN };
        }
        for &(other, run) in &side.runs {
            let slot = side.slots[other as usize];
            if slot != UNKNOWN {
                self.pairs[slot as usize].note(run);
            }
        }
    }

    fn new_pair(&mut self, pair: (u32, u32), count: u64, changed: &mut Vec<u32>) -> u32 {
        let at = u32::try_from(self.pairs.len()).ok().filter(|&at| at != UNKNOWN);
        let at = at.expect("memory ends before the numbers of pairs do");
        self.pairs.push(Pair { count, ..Pair::new(pair, 0) });
        self.enter(at, pair);
        changed.push(at);
        at
    }

    /// Stops tracking a pair if it no longer occurs often enough; returns whether that is so.
    pub(crate) fn forget_if_rare(&mut self, at: u32) -> bool {
        let pair = &mut self.pairs[at as usize];
        let rare = pair.count < self.tracked;
        if rare {
            pair.count = 0;
            pair.runs = Vec::new();
            self.index.remove(&(pair.left, pair.right));
            self.heap.remove(at);
        }
        rare
    }
}

impl Pair {
    fn new((left, right): (u32, u32), first: u32) -> Self {
        Pair { left, right, count: 0, first, merged_token: UNKNOWN, runs: Vec::new() }
    }

    /// Add a run that has the pair. Runs must be added in ascending order.
    fn note(&mut self, run: u32) {
        if self.runs.last() != Some(&run) {
            if self.runs.is_empty() {
                self.first = run;
            }
            self.runs.push(run);
        }
    }
}

/// The pairs of a part of the runs, in the order in which they occur first.
#[derive(Default)]
struct PairsOfPart {
    pairs: Vec<Pair>,
    index: HashMap<(u32, u32), u32>,
}

impl PairsOfPart {
    fn of(runs: &RoundRuns, part: Range<usize>, is_wanted: impl Fn((u32, u32)) -> bool) -> Self {
        let mut found = PairsOfPart::default();
        for (run, count, symbols) in runs.iter_in(part) {
            for pair in adjacent(symbols).filter(|&pair| is_wanted(pair)) {
                let known = found.entry(pair, run);
                known.count += count;
                known.note(run);
            }
        }
        found
    }

    fn entry(&mut self, pair: (u32, u32), run: u32) -> &mut Pair {
        let new = self.pairs.len() as u32; // fewer than the symbols of the runs
        let index = *self.index.entry(pair).or_insert(new);
        if index == new {
            self.pairs.push(Pair::new(pair, run));
        }
        &mut self.pairs[index as usize]
    }

    /// Append the values of the part after this one.
    fn followed_by(mut self, behind: Self) -> Self {
        for pair in behind.pairs {
            let known = self.entry((pair.left, pair.right), pair.first);
            known.count += pair.count;
            if known.runs.is_empty() {
                known.runs = pair.runs;
            } else {
                known.runs.extend_from_slice(&pair.runs);
            }
        }
        self
    }
}

/// Apply a function to each part, on a thread for each.
fn on_parts<T: Send>(parts: &[Range<usize>], work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let found = in_threads(parts, parts.len(), Vec::new, |found, part| {
        found.push((part.start, work(part.clone())));
        Ok(())
    });
    let found = found.expect("no part can fail");
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    found.sort_unstable_by_key(|&(start, _)| start);
    found.into_iter().map(|(_, result)| result).collect()
}

/// Return the error for counts that are smaller than the counts of the runs that a round holds.
pub(crate) fn contradicting_counts() -> Error {
    Error::data("the counts are smaller than in the runs: they are not from one run table")
}

/// Replaces the pair in a run; returns how often. Adds up the neighbours of each.
fn rewrite(
    runs: &mut RoundRuns,
    run: u32,
    [left, right]: [u32; 2],
    token: u32,
    neighbours: &mut Neighbours,
) -> u64 {
    let count = runs.count(run);
    let (head, symbols) = runs.words[run as usize..].split_at_mut(HEAD);
    let symbols = &mut symbols[..head[0] as usize];
    let (mut read, mut write) = (0, 0);
    let (mut before, mut after_merge) = (OUTSIDE, false);
    while read < symbols.len() {
        let symbol = symbols[read];
        let merges = symbol == left && symbols.get(read + 1) == Some(&right);
        if merges && after_merge {
            neighbours.between(run, count);
        } else if merges && before != OUTSIDE {
            neighbours.before.add(before, run, count);
        } else if after_merge && symbol != OUTSIDE {
            neighbours.after.add(symbol, run, count);
        }
        symbols[write] = if merges { token } else { symbol };
        (before, after_merge) = (symbol, merges);
        read += 1 + merges as usize;
        write += 1;
    }
    symbols[write..].fill(REMOVED);
    head[0] = write as u32;
    (read - write) as u64
}

/// Calls `change` for every stretch of equal tokens, with the sum of the token and the merges that it
/// makes with itself there.
fn change_self_merges(
    sums: &mut HashMap<u32, u64>,
    symbols: &[u32],
    mut change: impl FnMut(&mut u64, u64),
) {
    let mut at = 0;
    while at < symbols.len() {
        let length = symbols[at..].iter().take_while(|&&symbol| symbol == symbols[at]).count();
        if length > 1 && symbols[at] != OUTSIDE {
            change(sums.entry(symbols[at]).or_default(), length as u64 / 2);
        }
        at += length;
    }
}

/// The neighbours of the merges of a pair.
#[derive(Default)]
struct Neighbours {
    before: Side,
    after: Side,
    /// The number of times that two merges are side by side.
    between: u64,
    /// The runs where they do.
    between_runs: Vec<u32>,
}

/// The tokens on one side of the merges, and how often they stand there.
#[derive(Default)]
struct Side {
    /// The tokens whose count is not 0.
    tokens: Vec<u32>,
    /// By token, how often it stands there.
    counts: Vec<u64>,
    /// By token, the number of the pair that it makes with the new token, or `UNKNOWN`.
    slots: Vec<u32>,
    /// Tokens, and the runs where they stand there.
    runs: Vec<(u32, u32)>,
}

impl Neighbours {
    fn between(&mut self, run: u32, count: u64) {
        self.between += count;
        self.between_runs.push(run);
    }

    fn clear(&mut self) {
        self.before.clear();
        self.after.clear();
        self.between = 0;
        self.between_runs.clear();
    }
}

impl Side {
    fn add_token(&mut self) {
        self.counts.push(0);
        self.slots.push(UNKNOWN);
    }

    #[inline]
    fn add(&mut self, token: u32, run: u32, count: u64) {
        let sum = &mut self.counts[token as usize];
        if *sum == 0 {
            self.tokens.push(token);
        }
        *sum += count;
        self.runs.push((token, run));
    }

    fn clear(&mut self) {
        self.tokens.iter().for_each(|&token| self.counts[token as usize] = 0);
        self.tokens.clear();
        self.runs.clear();
    }
}

/// Upper limits of the counts of all pairs in little memory: a count-min sketch with one row, whose
/// cells pairs share.
struct Sketch {
    cells: Vec<u64>,
}

impl Sketch {
    const MOST_CELLS: usize = 1 << 21;

    /// `frequent`: about how many of the pairs are frequent. With few times as many cells, most cells of
    /// other pairs stay small.
    fn of(runs: &RoundRuns, parts: &[Range<usize>], frequent: u64) -> Self {
        let cells = frequent.saturating_mul(2).clamp(2, Self::MOST_CELLS as u64);
        let of_part = |part| {
            let mut sketch = Sketch { cells: vec![0; cells.next_power_of_two() as usize] };
            for (_, count, symbols) in runs.iter_in(part) {
                for pair in adjacent(symbols) {
                    let cell = sketch.cell(pair);
                    sketch.cells[cell] = sketch.cells[cell].saturating_add(count);
                }
            }
            sketch
        };
        let sketches = on_parts(parts, of_part).into_iter();
        let added = sketches.reduce(|mut all, sketch| {
            let sums = all.cells.iter_mut().zip(sketch.cells);
            sums.for_each(|(sum, more)| *sum = sum.saturating_add(more));
            all
        });
        added.expect("there is a part, if only an empty one")
    }

    fn limit(&self, pair: (u32, u32)) -> u64 {
        self.cells[self.cell(pair)]
    }

    fn cell(&self, pair: (u32, u32)) -> usize {
        (pair_hash(pair) >> (64 - self.cells.len().ilog2())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{counted, merged};
    use crate::text::marks::WordMarks;
    use wordpiece_testing::Random;

    fn tokens(count: u32) -> Tokens {
        // Every token is one character, so that merged tokens are new ones.
        let strings = (0..count).map(|n| char::from_u32('a' as u32 + n).unwrap().to_string());
        Tokens::new(strings.collect(), WordMarks::Prefix("##".into()), 100)
    }

    fn round_runs(splits: &[(Vec<u32>, u64)]) -> RoundRuns {
        let mut all = Splits::default();
        (0..).zip(splits).for_each(|(rank, (split, count))| all.push((rank, 0), *count, split));
        let mut runs = RoundRuns::default();
        runs.extend(&all).unwrap();
        runs
    }

    /// Every pair that occurs `least` times is tracked, with its count and its first place. `held`: the
    /// splits that the runs are.
    fn check(round: &Round, splits: &[(Vec<u32>, u64)], held: &[usize], least: u64) {
        let (unigrams, mut pairs) = counted(splits);
        pairs.retain(|_, (count, _)| *count >= least);
        let tracked = || round.pairs.iter().filter(|pair| pair.count >= least);
        assert_eq!(tracked().count(), pairs.len());
        for pair in tracked() {
            let (count, (run, at)) = pairs[&(pair.left, pair.right)];
            let (found, place) = round.locate(pair, &mut LongRuns::default());
            let number = round.runs.iter().position(|(other, ..)| other == found).unwrap();
            assert_eq!((pair.count, held[number], place), (count, run, at as u32));
        }
        let found = (0..).zip(&round.unigrams).filter(|(_, count)| **count > 0);
        assert_eq!(
            found
                .map(|(token, &count)| (token, count))
                .collect::<std::collections::HashMap<_, _>>(),
            unigrams
        );
    }

    #[test]
    fn merges_keep_all_counts_true() {
        let mut random = Random::new(9);
        for _ in 0..400 {
            let mut splits: Vec<_> = (0..1 + random.below(12))
                .map(|_| {
                    let split =
                        (0..random.below(10)).map(|_| *random.choose(&[0, 0, 1, 2, OUTSIDE]));
                    (split.collect::<Vec<_>>(), 1 + random.below(5) as u64)
                })
                .collect();
            let (mut tokens, least) = (tokens(3), 1 + random.below(4) as u64);
            let mut round = Round::new(round_runs(&splits));
            (0..3).for_each(|_| round.add_token());
            round.unigrams = round.count_unigrams();
            round.total = round.unigrams.iter().sum();
            let criterion = *random.choose(&[Criterion::Likelihood, Criterion::Pmi]);
            round.track(least, &tokens, criterion);
            let held: Vec<_> = (0..splits.len()).filter(|&at| splits[at].0.len() > 1).collect();
            check(&round, &splits, &held, least);
            for _ in 0..6 {
                let eligible: Vec<u32> = (0..round.pairs.len() as u32)
                    .filter(|&at| round.pairs[at as usize].count >= least)
                    .collect();
                if eligible.is_empty() {
                    break;
                }
                let at = *random.choose(&eligible);
                let Pair { left, right, .. } = round.pairs[at as usize];
                if tokens.merged(left, right).is_some() {
                    continue; // then the trainer recounts pairs
                }
                let token = tokens.add(tokens.merged_string(left, right));
                round.add_token();
                for at in round.apply(at, token, false, &tokens, criterion) {
                    round.forget_if_rare(at);
                }
                splits.iter_mut().for_each(|(s, _)| *s = merged(s, left, right, token));
                check(&round, &splits, &held, least);
                assert_eq!(round.total, round.unigrams.iter().sum::<u64>());
            }
        }
    }

    #[test]
    fn runs_must_be_in_order_and_be_countable() {
        let splits = |places: &[Place], count, symbols: &[u32]| {
            let mut splits = Splits::default();
            places.iter().for_each(|&place| splits.push(place, count, symbols));
            splits
        };
        let most = i64::MAX as u64;
        let mut runs = RoundRuns::default();
        runs.extend(&splits(&[(1, 0), (1, 2)], 1, &[0])).unwrap();
        for place in [(1, 2), (1, 1), (0, 9)] {
            let error = runs.extend(&splits(&[place], 1, &[0])).unwrap_err();
            assert_eq!(error, Error::data("splits out of order"));
        }
        assert_eq!(runs.extend(&splits(&[(2, 0)], most, &[0])), Err(Error::Overflow));
        assert_eq!(runs.extend(&splits(&[(3, 0)], most, &[0, 0, 0])), Err(Error::Overflow));
        // Characters outside of the alphabet are not counted.
        RoundRuns::default().extend(&splits(&[(2, 0), (3, 0)], most, &[OUTSIDE])).unwrap();
    }
}
