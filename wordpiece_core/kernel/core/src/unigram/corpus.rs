//! The runs of all words in memory, with their lattices if there is room for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::lattice::{Calculator, Lattices};
use super::model::{Finder, UnigramModel};
use super::runs::{RunCounts, add_run};
use super::seeds::{BestSeeds, SeedPiece, each_suffix, find_seeds, partition};
use super::sums::{Summand, Sums};
use crate::base::error::Result;
use crate::base::threads::in_threads;

const CHUNK: usize = 1 << 16; // bytes of text
const SEED_PARTITIONS: usize = 256;

/// Runs side by side.
#[derive(Default)]
struct Chunk {
    text: String,
    /// For each run, where it ends in `text`; and in the places of all runs, one for each character.
    ends: Vec<(u32, u32)>,
    counts: Vec<u64>,
    /// The lattices of all runs, if there was room.
    lattices: Option<Lattices>,
}

/// The runs of all words.
#[derive(Default)]
pub struct Corpus {
    added: RunCounts,
    chunks: Vec<Chunk>,
    /// The pieces of the lattices that are kept.
    known: Option<Arc<Vec<Arc<str>>>>,
}

impl Corpus {
    /// Adds a run that occurs `count` times.
    ///
    /// # Errors
    ///
    /// Returns [`crate::base::error::Error::Overflow`] if the sum exceeds 2^63 - 1.
    pub fn add(&mut self, run: &str, count: u64) -> Result<()> {
        add_run(&mut self.added, run, count)
    }

    /// Puts the runs that were added side by side.
    fn settle(&mut self) {
        for (run, count) in std::mem::take(&mut self.added) {
            if self.chunks.last().is_none_or(|chunk| chunk.text.len() >= CHUNK) {
                self.chunks.push(Chunk::default());
            }
            let chunk = self.chunks.last_mut().expect("one was pushed");
            let places = chunk.ends.last().map_or(0, |end| end.1);
            chunk.text.push_str(&run);
            let places = places + run.chars().count() as u32;
            chunk.ends.push((chunk.text.len() as u32, places));
            chunk.counts.push(count);
        }
    }

    /// The best seeds.
    ///
    /// # Errors
    ///
    /// Returns [`crate::base::error::Error::Overflow`] if a sum of counts exceeds 2^63 - 1.
    pub fn seeds(
        &mut self,
        max_length: usize,
        most: usize,
        threads: usize,
    ) -> Result<Vec<SeedPiece>> {
        self.settle();
        let mut parts = vec![Vec::new(); SEED_PARTITIONS];
        for chunk in &self.chunks {
            for (run, count) in chunk.runs() {
                each_suffix(run, max_length, |suffix| {
                    parts[partition(suffix, SEED_PARTITIONS)].push((suffix, count));
                });
            }
        }
        let parts: Vec<_> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
        let found = in_threads(
            &parts,
            threads,
            || BestSeeds::new(most),
            |best, part| {
                let part = part.lock().unwrap_or_else(PoisonError::into_inner).take();
                find_seeds(part.unwrap_or_default(), best)
            },
        )?;
        let mut best = BestSeeds::new(most);
        found.into_iter().flat_map(BestSeeds::finish).for_each(|seed| best.push(seed));
        Ok(best.finish())
    }

    /// Sums over all runs. `most_bytes`: of lattices that are kept for the next time.
    ///
    /// # Errors
    ///
    /// Returns [`crate::base::error::Error::Data`] if a run cannot be split into pieces.
    pub fn sums(
        &mut self,
        model: &UnigramModel,
        what: Summand,
        most_bytes: usize,
        threads: usize,
    ) -> Result<Sums> {
        self.settle();
        self.renumber(model, threads)?;
        let missing = self.chunks.iter().any(|chunk| chunk.lattices.is_none());
        let finder = missing.then(|| model.finder()).transpose()?;
        let kept: usize = self.chunks.iter().map(Chunk::memory).sum();
        let room = AtomicUsize::new(most_bytes.saturating_sub(kept));
        let chunks: Vec<_> = self.chunks.iter_mut().map(Mutex::new).collect();
        let begin = || (Sums::new(model.len()), Calculator::default());
        let parts = in_threads(&chunks, threads, begin, |(sums, calculator), chunk| {
            let mut chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            chunk.add_to(sums, what, model, finder, &room, calculator)
        })?;
        let mut parts = parts.into_iter().map(|(sums, _)| sums);
        let mut sums = parts.next().unwrap_or_else(|| Sums::new(model.len()));
        parts.for_each(|part| sums.add(&part));
        Ok(sums)
    }

    /// Gives the pieces of the lattices that are kept the numbers they have in this model.
    fn renumber(&mut self, model: &UnigramModel, threads: usize) -> Result<()> {
        let known = self.known.replace(model.pieces.clone());
        let Some(known) = known else { return Ok(()) };
        if Arc::ptr_eq(&known, &model.pieces) || *known == *model.pieces {
            return Ok(());
        }
        let (numbers, all_known) = new_numbers(&known, &model.pieces);
        if !all_known {
            self.chunks.iter_mut().for_each(|chunk| chunk.lattices = None);
            return Ok(());
        }
        let chunks: Vec<_> = self.chunks.iter_mut().map(Mutex::new).collect();
        in_threads(
            &chunks,
            threads,
            || (),
            |(), chunk| {
                let mut chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(lattices) = &mut chunk.lattices {
                    lattices.renumber(&numbers);
                }
                Ok(())
            },
        )?;
        Ok(())
    }
}

/// For each of the old pieces its number among the new ones, or `u32::MAX`; and whether all new ones
/// are among the old. Both are in order.
fn new_numbers(old: &[Arc<str>], new: &[Arc<str>]) -> (Vec<u32>, bool) {
    let mut next = 0;
    let numbers = old.iter().map(|piece| match new.get(next) {
        Some(found) if found == piece => {
            next += 1;
            next as u32 - 1
        }
        _ => u32::MAX,
    });
    let numbers = numbers.collect();
    (numbers, next == new.len())
}

impl Chunk {
    fn runs(&self) -> impl Iterator<Item = (&str, u64)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| end.0 as usize));
        let texts = starts.zip(&self.ends).map(|(start, end)| &self.text[start..end.0 as usize]);
        texts.zip(self.counts.iter().copied())
    }

    fn memory(&self) -> usize {
        self.lattices.as_ref().map_or(0, Lattices::memory)
    }

    /// Adds its runs to sums. `finder`: for lattices that are not kept.
    fn add_to(
        &mut self,
        sums: &mut Sums,
        what: Summand,
        model: &UnigramModel,
        finder: Option<&Finder>,
        room: &AtomicUsize,
        calculator: &mut Calculator,
    ) -> Result<()> {
        let kept = self.lattices.take();
        let is_new = kept.is_none();
        let lattices = kept.unwrap_or_else(|| {
            let mut lattices = Lattices::default();
            if let Some(finder) = finder {
                self.runs().for_each(|(run, _)| lattices.push(run, finder));
            }
            lattices.shrink();
            lattices
        });
        let mut start = 0;
        for (&(_, end), &count) in self.ends.iter().zip(&self.counts) {
            let lattice = lattices.lattice(start..end as usize);
            sums.add_run(what, &lattice, count, model, calculator)?;
            start = end as usize;
        }
        let memory = lattices.memory();
        let fits = |room: usize| room.checked_sub(memory);
        if !is_new || room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok() {
            self.lattices = Some(lattices);
        }
        Ok(())
    }
}
