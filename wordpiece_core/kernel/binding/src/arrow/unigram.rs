//! Record batches of the training of a unigram language model.

use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, RecordBatch};
use foldhash::HashMap;

use super::count::{each_word, with_rows, word_table};
use super::table::{Bits, Column, Text, table};
use wordpiece_core::internals::{
    RunCounts, add_run,
    seeds::{BestSeeds, SeedPiece, find_seeds},
    sums::add,
};
use wordpiece_core::train::WordLimits;
use wordpiece_core::unigram::{RunSplitter, UnigramModel};
use wordpiece_core::{Error, Result};

table! {
    /// The pieces of a model, with their scores.
    Pieces, |row: (Arc<str>, f64)| {
        piece: Text = row.0.clone(),
        score: Float64Type = row.1,
    } => (Arc<str>, f64) { (piece, score) }
}

table! {
    /// Sums, numbers of 128 bits.
    PieceSums, |sum: u128| {
        high: Bits = (sum >> 64) as u64,
        low: Bits = *sum as u64,
    } => u128 { (high as u128) << 64 | low as u128 }
}

/// The record batch of a model: its [`Pieces`].
pub fn model_batch(model: &UnigramModel) -> Result<RecordBatch> {
    Pieces::batch(model.pieces().iter().cloned().zip(model.scores().iter().copied()))
}

/// Reads the record batch of [`model_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, has another type or has nulls, or if the model is invalid.
pub fn read_model(table: &RecordBatch) -> Result<UnigramModel> {
    let (pieces, scores) = Pieces::rows(table)?.unzip();
    UnigramModel::new(pieces, scores)
}

/// Adds the sums in record batches of [`PieceSums`].
///
/// # Errors
///
/// Returns [`Error::Data`] if one cannot be read, or they are not of equal length.
pub fn add_sums(batches: &[RecordBatch]) -> Result<Vec<u128>> {
    let mut sums: Vec<u128> = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        let more = PieceSums::read(batch)?;
        if number == 0 {
            sums = more;
            continue;
        }
        if more.len() != sums.len() {
            return Err(Error::data("sums over other pieces"));
        }
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum = sum.checked_add(more).ok_or(Error::Overflow)?;
        }
    }
    Ok(sums)
}

/// Splits the words of tables into runs.
pub struct TableSplitter {
    /// Splits a word.
    pub splitter: RunSplitter,
    /// The words that take part.
    pub limits: WordLimits,
}

impl TableSplitter {
    /// Calls `each` with every run of the words of a table, its number of characters and its count.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the batch is not a word table, and the errors of `each`.
    pub fn each_run(
        &self,
        words: &RecordBatch,
        mut each: impl FnMut(&str, usize, u64) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = String::new();
        each_word(words, self.limits, 0, |_, word, count| {
            let mut done = Ok(());
            self.splitter.each_run(word, &mut buffer, |run, characters| {
                if done.is_ok() {
                    done = each(run, characters, count);
                }
            });
            done
        })
    }

    /// The characters of the runs of words, with their counts, as a word table ordered by character;
    /// and the number of characters of the runs, counting each word once.
    pub fn characters(&self, words: &RecordBatch) -> Result<(RecordBatch, u64)> {
        let (mut counts, mut all) = (HashMap::default(), 0);
        self.each_run(words, |run, characters, count| {
            all = add(all, characters as u64)?;
            for c in run.chars() {
                let sum = counts.entry(c).or_insert(0);
                *sum = add(*sum, count)?;
            }
            Ok(())
        })?;
        Ok((character_batch(counts)?, all))
    }

    /// The runs of words, as a word table in any order.
    pub fn runs(&self, words: &RecordBatch) -> Result<RecordBatch> {
        let mut runs = RunCounts::default();
        self.each_run(words, |run, _, count| add_run(&mut runs, run, count))?;
        word_table(runs.iter().map(|(run, &count)| (&**run, count)))
    }
}

fn character_batch(counts: HashMap<char, u64>) -> Result<RecordBatch> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable();
    let rows: Vec<_> = counts.iter().map(|(c, count)| (c.to_string(), *count)).collect();
    word_table(rows.iter().map(|(c, count)| (&**c, *count)))
}

/// Adds up the counts of equal characters.
///
/// # Errors
///
/// Returns [`Error::Data`] for a batch that is not a word table, and [`Error::Overflow`] if the counts of all
/// characters add up to more than 2^63 - 1.
pub fn add_characters(batches: &[RecordBatch]) -> Result<RecordBatch> {
    let (mut counts, mut all) = (HashMap::default(), 0);
    with_rows(batches, |rows| {
        for (text, count) in rows {
            for c in text.chars() {
                all = add(all, count)?;
                *counts.entry(c).or_insert(0) += count; // at most `all`
            }
        }
        Ok(())
    })?;
    character_batch(counts)
}

/// The word table of seeds, in their order.
pub fn seed_batch(seeds: &[SeedPiece]) -> Result<RecordBatch> {
    word_table(seeds.iter().map(|seed| (&*seed.piece, seed.count)))
}

/// The best seeds among the suffixes of a partition, the best first.
pub fn seeds_in(suffixes: &[RecordBatch], most: usize) -> Result<RecordBatch> {
    let mut best = BestSeeds::new(most);
    with_rows(suffixes, |rows| find_seeds(rows, &mut best))?;
    seed_batch(&best.finish())
}

/// Return the best seeds of all partitions, best first.
pub fn best_seeds(batches: &[RecordBatch], most: usize) -> Result<RecordBatch> {
    let mut best = BestSeeds::new(most);
    with_rows(batches, |rows| {
        for (piece, count) in rows {
            let characters = piece.chars().count();
            best.push(SeedPiece { piece: piece.into(), count, characters });
        }
        Ok(())
    })?;
    seed_batch(&best.finish())
}

/// The model that training begins with, of word tables of characters and of seeds.
///
/// # Errors
///
/// Returns [`Error::Data`] if a batch is not a word table, or if a piece occurs twice.
pub fn first_model(batches: &[RecordBatch]) -> Result<UnigramModel> {
    with_rows(batches, |rows| {
        let weight = |piece: &str, count| count as u128 * piece.chars().count() as u128;
        wordpiece_core::unigram::first_model(
            rows.into_iter().map(|(p, count)| (p.into(), weight(p, count))).collect(),
        )
    })
}
