//! The driver of training: one round of merges, exact (see `Trainer::run`).
//!
//! A round begins with the counts of tokens and pairs over the whole corpus, and with the splits
//! of some words, all of them if they fit. As long as every occurrence of the best pair is in
//! those words (the pair is *covered*), merging it there keeps all counts true of the whole
//! corpus. When the best pair is not covered, the round ends.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::heap::{Key, PairHeap};
use crate::score::{Counts, Criterion, Score};
use crate::splits::{Aggregate, CountOverflow, OUTSIDE, PairCount, Place, Splits, add};

pub struct TrainOptions {
    pub vocab_size: usize,
    pub criterion: Criterion,
    /// The count that a pair needs to be merged; None: falling (see `lower_support`).
    pub min_pair_count: Option<u64>,
    /// In characters, the continuing prefix not counted.
    pub max_token_length: usize,
    pub continuing_prefix: String,
}

/// One line of the training log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merge {
    pub left: u32,
    pub right: u32,
    pub token: u32,
    pub score: f64,
    pub pair_count: u64,
    pub left_count: u64,
    pub right_count: u64,
}

/// How a call of `run` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As many merges were made as were asked for.
    Running,
    /// The best pair is not covered: the next round needs new counts.
    RoundOver,
    /// The vocabulary is full, or no pair is left.
    Done,
}

/// The next support when no pair reaches this one, for `min_pair_count: auto`: five sixths.
pub fn lower_support(support: u64) -> u64 {
    (support - support.div_ceil(6)).max(1)
}

/// Training so far: the vocabulary and the merges.
pub struct Trainer {
    options: TrainOptions,
    tokens: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, u32>,
    /// Characters of each token, without the prefix.
    lengths: Vec<u32>,
    merges: Vec<Merge>,
    /// The count that makes a pair eligible now; 0 before the first round of a falling support.
    support: u64,
    round: Round,
}

/// The counts of a round and the words that it holds.
#[derive(Default)]
struct Round {
    unigrams: Vec<u64>,
    total: u64,
    /// A lower bound of each token's count, with which the keys of its pairs are computed.
    floors: Vec<u64>,
    pairs: Vec<Pair>,
    index: FxHashMap<(u32, u32), u32>,
    /// The pairs of each token; some may be gone.
    of_token: Vec<Vec<u32>>,
    heap: PairHeap,
    words: Words,
    merges: usize,
}

struct Pair {
    left: u32,
    right: u32,
    count: u64,
    merges: u64,
    /// Occurrences in words that the round does not hold. Merges never change it.
    outside: u64,
    /// Its first occurrence when it was last looked up: by now that is there, or in a later word.
    first: Place,
    /// The words that hold it, and words that held it once.
    words: Vec<u32>,
    /// Whether `words` is ascending.
    sorted: bool,
    /// Whether it is in the round's `touched` list.
    touched: bool,
}

/// Splits that shrink in place.
#[derive(Default)]
struct Words {
    ranks: Vec<u64>,
    counts: Vec<u64>,
    starts: Vec<usize>,
    lengths: Vec<u32>,
    symbols: Vec<u32>,
}

impl Words {
    fn new(splits: Vec<Splits>) -> Self {
        let mut order: Vec<(u64, u32, u32)> = Vec::new();
        for (part, splits) in (0..).zip(&splits) {
            order.extend(splits.ranks.iter().zip(0..).map(|(&rank, word)| (rank, part, word)));
        }
        order.sort_unstable();
        let mut words = Words::default();
        for (rank, part, word) in order {
            let splits = &splits[part as usize];
            let symbols = splits.word(word as usize);
            words.ranks.push(rank);
            words.counts.push(splits.counts[word as usize]);
            words.starts.push(words.symbols.len());
            words.lengths.push(symbols.len() as u32);
            words.symbols.extend_from_slice(symbols);
        }
        words
    }

    fn symbols(&self, word: u32) -> &[u32] {
        let start = self.starts[word as usize];
        &self.symbols[start..start + self.lengths[word as usize] as usize]
    }

    /// Where a word holds a pair first.
    fn place(&self, word: u32, pair: (u32, u32)) -> Option<Place> {
        let at = self.symbols(word).windows(2).position(|two| (two[0], two[1]) == pair)?;
        Some((self.ranks[word as usize], at as u32))
    }
}

impl Trainer {
    /// `tokens`: special tokens and alphabet, without duplicates.
    pub fn new(tokens: Vec<String>, options: TrainOptions) -> Self {
        let mut trainer = Trainer {
            support: options.min_pair_count.unwrap_or(0),
            options,
            tokens: Vec::new(),
            ids: FxHashMap::default(),
            lengths: Vec::new(),
            merges: Vec::new(),
            round: Round::default(),
        };
        for token in tokens {
            trainer.add_token(token.into());
        }
        trainer
    }

    pub fn tokens(&self) -> &[Box<str>] {
        &self.tokens
    }

    /// The count that makes a pair eligible now; 0 if training has not begun.
    pub fn support(&self) -> u64 {
        self.support
    }

    /// Goes on with the support of another trainer of the same training.
    pub fn set_support(&mut self, support: u64) {
        self.support = support;
    }

    pub fn merges(&self) -> &[Merge] {
        &self.merges
    }

    fn add_token(&mut self, token: Box<str>) -> u32 {
        let bare = token.strip_prefix(&*self.options.continuing_prefix).unwrap_or(&token);
        self.lengths.push(bare.chars().count() as u32);
        let id = self.tokens.len() as u32;
        self.ids.insert(token.clone(), id);
        self.tokens.push(token);
        id
    }

    fn merged_string(&self, left: u32, right: u32) -> String {
        let (left, right) = (&self.tokens[left as usize], &self.tokens[right as usize]);
        let bare = right.strip_prefix(&*self.options.continuing_prefix).unwrap_or(right);
        format!("{left}{bare}")
    }

    /// Begins a round with the counts over the whole corpus and the words that it may change.
    pub fn start_round(
        &mut self,
        counts: &Aggregate,
        gathered: Vec<Splits>,
    ) -> Result<(), CountOverflow> {
        let mut round = Round { words: Words::new(gathered), ..Round::default() };
        for _ in 0..self.tokens.len() {
            round.add_token();
        }
        for (&token, &count) in &counts.unigrams {
            round.unigrams[token as usize] = count;
            round.floors[token as usize] = floor(count);
            round.total = add(round.total, count)?;
        }
        for (&(left, right), pair) in &counts.pairs {
            let known = round.pair_index(left, right, pair.first) as usize;
            round.pairs[known].count = pair.count;
            round.pairs[known].merges = pair.merges;
            round.pairs[known].outside = pair.count;
        }
        for word in 0..round.words.ranks.len() as u32 {
            round.add_occurrences(word);
        }
        self.start_support(counts.pairs.iter());
        self.round = round;
        self.fill_heap();
        Ok(())
    }

    fn start_support<'a>(&mut self, pairs: impl Iterator<Item = (&'a (u32, u32), &'a PairCount)>) {
        if self.support == 0 {
            let counts = pairs.filter(|((a, b), _)| self.fits(*a, *b)).map(|(_, pair)| pair.count);
            self.support = counts.max().unwrap_or(1);
        }
    }

    /// Whether the token that a pair makes is not too long.
    fn fits(&self, left: u32, right: u32) -> bool {
        let length = self.lengths[left as usize] as usize + self.lengths[right as usize] as usize;
        length <= self.options.max_token_length
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
    fn update_key(&mut self, index: u32) {
        let pair = &self.round.pairs[index as usize];
        let eligible = pair.count >= self.support.max(1) && self.fits(pair.left, pair.right);
        if !eligible {
            self.round.heap.remove(index);
            return;
        }
        let (left, right) = (pair.left as usize, pair.right as usize);
        let mut counts = self.counts(pair);
        // A count is never below what the pair's merges take of it.
        let least = counts.merges * if counts.same { 2 } else { 1 };
        counts.left = self.round.floors[left].max(least);
        counts.right = self.round.floors[right].max(least);
        let bound = Score::bound(self.options.criterion, &counts);
        let key = Key { bound, first: pair.first.0 };
        self.round.heap.set(index, key);
    }

    /// The counts that a pair's score depends on, as they are. Those that only the likelihood
    /// needs are kept for it alone.
    fn counts(&self, pair: &Pair) -> Counts {
        let likelihood = self.options.criterion == Criterion::Likelihood;
        Counts {
            pair: pair.count,
            merges: if likelihood { pair.merges } else { 0 },
            left: self.round.unigrams[pair.left as usize],
            right: self.round.unigrams[pair.right as usize],
            merged: if likelihood { self.count_of_merged(pair) } else { 0 },
            total: self.round.total,
            same: pair.left == pair.right,
        }
    }

    /// How often the token that a pair makes occurs already.
    fn count_of_merged(&self, pair: &Pair) -> u64 {
        let merged = self.merged_string(pair.left, pair.right);
        self.ids.get(merged.as_str()).map_or(0, |&id| self.round.unigrams[id as usize])
    }

    /// Makes up to `most` merges, each that of the best pair.
    pub fn run(&mut self, most: usize) -> Status {
        for _ in 0..most {
            if self.tokens.len() >= self.options.vocab_size {
                return Status::Done;
            }
            let Some((pair, score)) = self.best_pair() else { return Status::Done };
            let covered = self.round.pairs[pair as usize].outside == 0;
            // Before its first merge a round knows all places, and can merge any best pair; of
            // one that it does not cover it cannot tell the new counts.
            if !covered && self.round.merges > 0 {
                return Status::RoundOver;
            }
            self.merge(pair, score);
            if !covered {
                return Status::RoundOver;
            }
        }
        Status::Running
    }

    /// The eligible pair with the highest score; of equals, the one that occurs first. Lowers a
    /// falling support until there is one.
    fn best_pair(&mut self) -> Option<(u32, Score)> {
        loop {
            if let Some(best) = self.best_in_heap() {
                return Some(best);
            }
            if self.options.min_pair_count.is_some() || self.support <= 1 {
                return None;
            }
            self.support = lower_support(self.support);
            self.fill_heap();
        }
    }

    fn best_in_heap(&mut self) -> Option<(u32, Score)> {
        let mut best: Option<(u32, Score)> = None;
        let mut places = Places::default();
        self.round.heap.walk(|key, index| {
            let pair = &self.round.pairs[index as usize];
            let Some((champion, champion_score)) = best else {
                best = Some((index, Score::of(self.options.criterion, &self.counts(pair))));
                return true;
            };
            let order = key.bound.compare(&champion_score);
            if order.is_lt() || (order.is_eq() && key.first > self.first(champion, &mut places).0) {
                return false;
            }
            let score = Score::of(self.options.criterion, &self.counts(pair));
            let order = score.compare(&champion_score);
            let wins = order.is_gt()
                || (order.is_eq()
                    && self.first(index, &mut places) < self.first(champion, &mut places));
            if wins {
                best = Some((index, score));
            }
            true
        });
        for (pair, place) in places {
            self.round.pairs[pair as usize].first = place;
            self.round.pairs[pair as usize].sort_words();
            self.update_key(pair);
        }
        best
    }

    /// The first occurrence of a pair, looked up once and noted in `places`. Of a pair with
    /// occurrences outside the round's words, after a merge: a place not after it.
    fn first(&self, index: u32, places: &mut Places) -> Place {
        let pair = &self.round.pairs[index as usize];
        if pair.outside > 0 {
            return if self.round.merges == 0 { pair.first } else { (pair.first.0, 0) };
        }
        *places.entry(index).or_insert_with(|| self.round.locate(pair))
    }

    fn merge(&mut self, index: u32, score: Score) {
        let pair = &self.round.pairs[index as usize];
        let (left, right, outside) = (pair.left, pair.right, pair.outside);
        let counts = self.counts(pair);
        let merged = self.merged_string(left, right);
        let token = match self.ids.get(merged.as_str()) {
            Some(&known) => known,
            None => {
                self.round.add_token();
                self.add_token(merged.into())
            }
        };
        self.merges.push(Merge {
            left,
            right,
            token,
            score: score.value(self.options.criterion),
            pair_count: counts.pair,
            left_count: counts.left,
            right_count: counts.right,
        });
        self.round.merges += 1;
        if outside == 0 {
            let touched = self.round.apply(index, token, self.options.criterion);
            self.update_keys(&touched, [left, right, token]);
        }
    }

    /// After a merge: new keys for the pairs whose counts changed, and for all pairs of a token
    /// whose count has left its bounds.
    fn update_keys(&mut self, touched: &[u32], tokens: [u32; 3]) {
        let drifted = tokens.map(|token| {
            let count = self.round.unigrams[token as usize];
            let bound = &mut self.round.floors[token as usize];
            let drifted = count < *bound || floor(count) > *bound + *bound / 4;
            if drifted {
                *bound = floor(count);
            }
            drifted
        });
        for (token, drifted) in tokens.into_iter().zip(drifted) {
            if drifted {
                let mut pairs = std::mem::take(&mut self.round.of_token[token as usize]);
                pairs.retain(|&pair| self.round.pairs[pair as usize].count > 0);
                pairs.iter().for_each(|&pair| self.update_key(pair));
                self.round.of_token[token as usize] = pairs;
            }
        }
        for &pair in touched {
            self.round.pairs[pair as usize].touched = false;
            self.update_key(pair);
            self.round.forget_if_gone(pair);
        }
        if self.options.criterion == Criterion::Likelihood {
            self.update_makers(tokens[2]);
        }
    }

    /// New keys for the pairs that would make `token` too: their gain depends on its count.
    fn update_makers(&mut self, token: u32) {
        let text = self.tokens[token as usize].clone();
        let prefix = self.options.continuing_prefix.clone();
        for (at, _) in text.char_indices().skip(1) {
            let left = self.ids.get(&text[..at]);
            let right = self.ids.get(format!("{prefix}{}", &text[at..]).as_str());
            if let (Some(&left), Some(&right)) = (left, right)
                && let Some(&pair) = self.round.index.get(&(left, right))
            {
                self.update_key(pair);
            }
        }
    }

    /// The best pairs, as long as the words that hold them have no more than `budget` tokens:
    /// those whose words a round should gather. Empty if already the best pair's exceed it.
    pub fn hot_pairs(&mut self, counts: &Aggregate, budget: u64) -> FxHashSet<(u32, u32)> {
        self.start_support(counts.pairs.iter());
        let total = counts.unigrams.values().sum();
        let count = |token: u32| counts.unigrams.get(&token).copied().unwrap_or(0);
        let mut ranked: Vec<_> = counts
            .pairs
            .iter()
            .filter(|((a, b), pair)| self.fits(*a, *b) && self.level(pair.count).is_some())
            .map(|(&(a, b), pair)| {
                let merged = self.merged_string(a, b);
                let merged = self.ids.get(merged.as_str()).map_or(0, |&id| count(id));
                let counts = Counts {
                    pair: pair.count,
                    merges: pair.merges,
                    left: count(a),
                    right: count(b),
                    merged,
                    total,
                    same: a == b,
                };
                let score = Score::of(self.options.criterion, &counts);
                (self.level(pair.count), score, pair.first, (a, b), pair.tokens)
            })
            .collect();
        ranked.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| b.1.compare(&a.1)).then_with(|| a.2.cmp(&b.2))
        });
        let mut held = 0u64;
        let affordable = ranked.iter().take_while(|(.., tokens)| {
            held = held.saturating_add(*tokens);
            held <= budget
        });
        affordable.map(|(.., pair, _)| *pair).collect()
    }

    /// How often the support must be lowered until a pair of this count is eligible.
    fn level(&self, count: u64) -> Option<u32> {
        let (mut support, mut level) = (self.support, 0);
        while count < support {
            if self.options.min_pair_count.is_some() || support <= 1 {
                return None;
            }
            support = lower_support(support);
            level += 1;
        }
        Some(level)
    }
}

/// The bound below a token's count with which keys are computed: exact for small counts, one
/// sixteenth less for large ones, so that a token's pairs get new keys each time its count has
/// fallen by a sixteenth.
fn floor(count: u64) -> u64 {
    count - count / 16
}

impl Round {
    fn add_token(&mut self) {
        self.unigrams.push(0);
        self.floors.push(0);
        self.of_token.push(Vec::new());
    }

    /// The pair of two tokens, which is made if it is new.
    fn pair_index(&mut self, left: u32, right: u32, first: Place) -> u32 {
        let new = self.pairs.len() as u32;
        let index = *self.index.entry((left, right)).or_insert(new);
        if index == new {
            self.of_token[left as usize].push(new);
            if left != right {
                self.of_token[right as usize].push(new);
            }
            self.pairs.push(Pair {
                left,
                right,
                count: 0,
                merges: 0,
                outside: 0,
                first,
                words: Vec::new(),
                sorted: true,
                touched: false,
            });
        }
        index
    }

    /// Notes at the start of a round which pairs a word holds.
    fn add_occurrences(&mut self, word: u32) {
        let count = self.words.counts[word as usize];
        let start = self.words.starts[word as usize];
        for at in start + 1..start + self.words.lengths[word as usize] as usize {
            let (left, right) = (self.words.symbols[at - 1], self.words.symbols[at]);
            if left != OUTSIDE && right != OUTSIDE {
                let index = self.pair_index(left, right, (0, 0)) as usize;
                self.pairs[index].outside -= count;
                self.pairs[index].note(word);
            }
        }
    }

    /// The first occurrence of a pair that is covered.
    fn locate(&self, pair: &Pair) -> Place {
        let place = |&word: &u32| self.words.place(word, (pair.left, pair.right));
        let found = if pair.sorted {
            let known =
                pair.words.partition_point(|&w| self.words.ranks[w as usize] < pair.first.0);
            pair.words[known..].iter().find_map(place)
        } else {
            pair.words.iter().filter_map(place).min()
        };
        found.unwrap_or(pair.first)
    }

    /// Merges a covered pair in all its words. Returns the pairs whose counts changed.
    fn apply(&mut self, index: u32, token: u32, criterion: Criterion) -> Vec<u32> {
        let pair = &mut self.pairs[index as usize];
        let (left, right) = (pair.left, pair.right);
        pair.sort_words();
        let words = std::mem::take(&mut pair.words);
        let mut change = Change::default();
        for word in words {
            let made = self.rewrite(word, left, right, token, &mut change);
            if made == 0 {
                continue;
            }
            let count = self.words.counts[word as usize];
            self.change_pairs(word, count, criterion, &mut change);
            self.unigrams[left as usize] -= made * count;
            self.unigrams[right as usize] -= made * count;
            self.unigrams[token as usize] += made * count;
            self.total -= made * count;
        }
        change.touched
    }

    /// Replaces the pair in a word's split; returns how often. Notes in `change` the symbols
    /// before and after, each with whether it took part in a merge.
    fn rewrite(
        &mut self,
        word: u32,
        left: u32,
        right: u32,
        token: u32,
        change: &mut Change,
    ) -> u64 {
        let start = self.words.starts[word as usize];
        let length = self.words.lengths[word as usize] as usize;
        let symbols = &mut self.words.symbols[start..start + length];
        change.old.clear();
        change.new.clear();
        let mut at = 0;
        while at < length {
            let here = symbols[at] == left && symbols.get(at + 1) == Some(&right);
            if here {
                change.old.extend([(left, true), (right, true)]);
                change.new.push((token, true));
            } else {
                change.old.push((symbols[at], false));
                change.new.push((symbols[at], false));
            }
            at += 1 + here as usize;
        }
        for (symbol, (new, _)) in symbols.iter_mut().zip(&change.new) {
            *symbol = *new;
        }
        self.words.lengths[word as usize] = change.new.len() as u32;
        (length - change.new.len()) as u64
    }

    /// Takes the pairs at the merges out of the counts and puts the new ones in.
    fn change_pairs(&mut self, word: u32, count: u64, criterion: Criterion, change: &mut Change) {
        for at in 1..change.old.len() {
            let ((left, near), (right, far)) = (change.old[at - 1], change.old[at]);
            if (near || far) && left != OUTSIDE && right != OUTSIDE {
                let index = self.index[&(left, right)];
                self.pairs[index as usize].count -= count;
                change.touch(index, &mut self.pairs);
            }
        }
        let place = (self.words.ranks[word as usize], 0);
        for at in 1..change.new.len() {
            let ((left, near), (right, far)) = (change.new[at - 1], change.new[at]);
            if (near || far) && left != OUTSIDE && right != OUTSIDE {
                let index = self.pair_index(left, right, place);
                let pair = &mut self.pairs[index as usize];
                pair.count += count;
                pair.first = pair.first.min(place);
                pair.note(word);
                change.touch(index, &mut self.pairs);
            }
        }
        if criterion == Criterion::Likelihood {
            self.change_merges(count, change);
        }
    }

    /// Keeps `merges` of the changed pairs: every pair at a merge, and of `a a` as many as fit
    /// into its runs.
    fn change_merges(&mut self, count: u64, change: &mut Change) {
        let mut changed = Vec::new();
        let mut count_merges = |symbols: &[(u32, bool)], add: bool| {
            let mut run = 0;
            for at in 1..symbols.len() {
                let ((left, near), (right, far)) = (symbols[at - 1], symbols[at]);
                run = if left == right { run + 1 } else { 0 };
                let merged_here = left != right || run % 2 == 1;
                let changed_here = left == right || near || far;
                if merged_here && changed_here && left != OUTSIDE && right != OUTSIDE {
                    let index = self.index[&(left, right)];
                    let merges = &mut self.pairs[index as usize].merges;
                    *merges = if add { *merges + count } else { *merges - count };
                    changed.push(index);
                }
            }
        };
        count_merges(&change.old, false);
        count_merges(&change.new, true);
        changed.into_iter().for_each(|index| change.touch(index, &mut self.pairs));
    }

    /// Frees what is held for a pair that no longer occurs.
    fn forget_if_gone(&mut self, index: u32) {
        let pair = &mut self.pairs[index as usize];
        if pair.count == 0 {
            pair.words = Vec::new();
            self.index.remove(&(pair.left, pair.right));
        }
    }
}

impl Pair {
    fn sort_words(&mut self) {
        if !self.sorted {
            self.words.sort(); // the stable sort, linear on a few ascending runs
            self.words.dedup();
            self.sorted = true;
        }
    }

    fn note(&mut self, word: u32) {
        match self.words.last() {
            Some(&last) if last == word => return,
            Some(&last) if last > word => self.sorted = false,
            _ => {}
        }
        self.words.push(word);
    }
}

type Places = FxHashMap<u32, Place>;

/// What a merge changes: the pairs touched so far, and the symbols of the word at hand.
#[derive(Default)]
struct Change {
    touched: Vec<u32>,
    old: Vec<(u32, bool)>,
    new: Vec<(u32, bool)>,
}

impl Change {
    fn touch(&mut self, index: u32, pairs: &mut [Pair]) {
        let pair = &mut pairs[index as usize];
        if !pair.touched {
            pair.touched = true;
            self.touched.push(index);
        }
    }
}
