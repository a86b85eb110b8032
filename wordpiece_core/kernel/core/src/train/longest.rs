//! Splits of words by greedy longest match with a vocabulary that changes. Splits of an extended vocabulary
//! begin with its tokens; pruning computes the loss of each token. Tokens can be left out without
//! rebuilding the trie.

use crate::base::error::{Error, Result};
use crate::base::sums::add;
use crate::base::trie::Trie;
use crate::train::splits::{OUTSIDE, SymbolCounts, add_symbol};

/// Tokenizes words by greedy longest match. Where no token fits, one character is `u32::MAX`, and what
/// follows it still continues the word.
///
/// # Examples
///
/// ```
/// use wordpiece_core::internals::LongestMatch;
///
/// let tokens = ["un", "u", "##n", "##able"].map(String::from);
/// let longest = LongestMatch::new(&tokens, "##", &[]).unwrap();
/// let mut symbols = Vec::new();
/// longest.tokenize("unxable", |_| true, &mut symbols);
/// assert_eq!(symbols, [0, u32::MAX, 3]);
/// longest.tokenize("unable", |token| token != 0, &mut symbols);
/// assert_eq!(symbols, [1, 2, 3]);
/// ```
pub struct LongestMatch {
    trie: Trie,
    /// By token, whether it is part of the vocabulary.
    alive: Vec<bool>,
}

/// The losses of a word table without single tokens. All vectors are indexed by token.
pub struct Losses {
    /// The number of uses of the token.
    pub uses: Vec<u64>,
    /// The number of additional tokens without it; negative if there would be fewer.
    pub losses: Vec<i64>,
    /// True if some word can be tokenized only with it.
    pub is_needed: Vec<bool>,
    /// True if a word that all tokens can tokenize, and the vocabulary cannot, needs it: all
    /// tokens split it into this one and others.
    pub is_missed: Vec<bool>,
}

/// The uses of the tokens of an extended vocabulary. Both vectors are indexed by token.
pub struct Uses {
    /// The number of uses of the token in words that can be tokenized.
    pub uses: Vec<u64>,
    /// True if it is used in a word that the old tokens can tokenize, and all tokens cannot.
    pub is_harmful: Vec<bool>,
}

impl LongestMatch {
    /// Makes one of a vocabulary.
    ///
    /// # Arguments
    ///
    /// * `tokens` - All tokens, by their ids.
    /// * `prefix` - The prefix of the tokens that continue a word, mostly `##`.
    /// * `dropped` - The ids of tokens that are not used.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if there are too many tokens, or if a dropped id is out of range.
    pub fn new(tokens: &[String], prefix: &str, dropped: &[u32]) -> Result<Self> {
        let numbered = || tokens.iter().map(String::as_str).zip(0..);
        let continuing =
            numbered().filter_map(|(token, id)| Some((token.strip_prefix(prefix)?, id)));
        let trie = Trie::new([numbered().collect(), continuing.collect()])?;
        let mut alive = vec![true; tokens.len()];
        for &token in dropped {
            let known = alive.get_mut(token as usize);
            *known.ok_or_else(|| Error::data(format!("token {token} is not known")))? = false;
        }
        Ok(LongestMatch { trie, alive })
    }

    /// Writes the symbols of a word into `symbols`, which is cleared first. `admits`: which tokens of
    /// the vocabulary may be used.
    pub fn tokenize(&self, word: &str, admits: impl Fn(u32) -> bool, symbols: &mut Vec<u32>) {
        symbols.clear();
        let admits = |token| self.alive[token as usize] && admits(token);
        symbols.extend(self.trie.longest_tokens(word, admits).map(|(id, _)| id.unwrap_or(OUTSIDE)));
    }

    /// Adds the characters of a word for which no token fits to the counts of symbols. Returns how
    /// many symbols the word has.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`] if a count exceeds 2^63 - 1.
    pub fn count_missing(
        &self,
        word: &str,
        count: u64,
        rank: u64,
        missing: &mut SymbolCounts,
    ) -> Result<u64> {
        let (mut symbols, mut offset, mut rest) = (0, 0, word);
        for (id, length) in self.trie.longest_tokens(word, |token| self.alive[token as usize]) {
            symbols += 1;
            if let (None, Some(c)) = (id, rest.chars().next()) {
                add_symbol(missing, (c, offset > 0), count, (rank, offset as u32))?;
            }
            offset += rest[..length].chars().count();
            rest = &rest[length..];
        }
        Ok(symbols)
    }

    /// Empty sums for [`LongestMatch::add_uses`].
    pub fn no_uses(&self) -> Uses {
        let tokens = self.alive.len();
        Uses { uses: vec![0; tokens], is_harmful: vec![false; tokens] }
    }

    /// Adds how a word uses the tokens of an extended vocabulary. `old`: how many tokens it had.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`] if a count exceeds 2^63 - 1.
    pub fn add_uses(&self, word: &str, count: u64, old: u32, sums: &mut Uses) -> Result<()> {
        let (mut symbols, mut before) = (Vec::new(), Vec::new());
        self.tokenize(word, |_| true, &mut symbols);
        if !symbols.contains(&OUTSIDE) {
            return symbols.iter().try_for_each(|&token| {
                let uses = &mut sums.uses[token as usize];
                *uses = add(*uses, count)?;
                Ok(())
            });
        }
        self.tokenize(word, |token| token < old, &mut before);
        if !before.contains(&OUTSIDE) {
            for token in symbols.into_iter().filter(|&token| token != OUTSIDE && token >= old) {
                sums.is_harmful[token as usize] = true;
            }
        }
        Ok(())
    }

    /// Empty sums for [`LongestMatch::add_losses`].
    pub fn no_losses(&self) -> Losses {
        let tokens = self.alive.len();
        Losses {
            uses: vec![0; tokens],
            losses: vec![0; tokens],
            is_needed: vec![false; tokens],
            is_missed: vec![false; tokens],
        }
    }

    /// Adds what a word would lose without each of its tokens.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`] if a sum exceeds 2^63 - 1.
    pub fn add_losses(&self, word: &str, count: u64, sums: &mut Losses) -> Result<()> {
        let (mut symbols, mut without) = (Vec::new(), Vec::new());
        self.tokenize(word, |_| true, &mut symbols);
        if symbols.contains(&OUTSIDE) {
            let all = || self.trie.longest_tokens(word, |_| true).map(|(id, _)| id); // with dropped tokens
            if all().all(|id| id.is_some()) {
                all().flatten().for_each(|token| sums.is_missed[token as usize] = true);
            }
            return Ok(());
        }
        for (at, &token) in symbols.iter().enumerate() {
            let place = token as usize;
            sums.uses[place] = add(sums.uses[place], count)?;
            if symbols[..at].contains(&token) {
                continue;
            }
            self.tokenize(word, |other| other != token, &mut without);
            if without.contains(&OUTSIDE) {
                sums.is_needed[place] = true;
            } else {
                let more = without.len() as i64 - symbols.len() as i64;
                let loss = i64::try_from(count).ok().and_then(|count| count.checked_mul(more));
                let sum = loss.and_then(|loss| sums.losses[place].checked_add(loss));
                sums.losses[place] = sum.ok_or(Error::Overflow)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::splits::SymbolCount;
    use wordpiece_testing::Random;

    /// Greedy longest match, as one would write it down.
    fn plain(word: &str, tokens: &[String], admits: &dyn Fn(u32) -> bool) -> Vec<u32> {
        let characters: Vec<char> = word.chars().collect();
        let (mut start, mut symbols) = (0, Vec::new());
        while start < characters.len() {
            let fits = (start + 1..=characters.len()).rev().find_map(|end| {
                let part: String = characters[start..end].iter().collect();
                let wanted = if start == 0 { part } else { format!("##{part}") };
                let id = tokens.iter().position(|token| *token == wanted)? as u32;
                admits(id).then_some((id, end))
            });
            let (symbol, end) = fits.unwrap_or((OUTSIDE, start + 1));
            symbols.push(symbol);
            start = end;
        }
        symbols
    }

    fn random_word(random: &mut Random, most: usize) -> String {
        (0..1 + random.below(most)).map(|_| *random.choose(&['a', 'b', 'é'])).collect()
    }

    #[test]
    fn words_are_cut_and_tokens_weighed_as_one_would_by_hand() {
        let mut random = Random::new(5);
        for _ in 0..500 {
            let mut tokens: Vec<String> = Vec::new();
            for _ in 0..random.below(9) {
                let prefix = *random.choose(&["", "##"]);
                let token = format!("{prefix}{}", random_word(&mut random, 3));
                if !tokens.contains(&token) {
                    tokens.push(token);
                }
            }
            let dropped: Vec<u32> =
                (0..tokens.len() as u32).filter(|_| random.below(5) == 0).collect();
            let longest = LongestMatch::new(&tokens, "##", &dropped).unwrap();
            let word = random_word(&mut random, 7);
            let mut symbols = Vec::new();
            longest.tokenize(&word, |_| true, &mut symbols);
            let alive = |token: u32| !dropped.contains(&token);
            assert_eq!(symbols, plain(&word, &tokens, &alive), "{word} {tokens:?}");

            let mut missing = SymbolCounts::default();
            assert_eq!(longest.count_missing(&word, 3, 1, &mut missing), Ok(symbols.len() as u64));
            let outside = symbols.iter().filter(|&&symbol| symbol == OUTSIDE).count() as u64;
            assert_eq!(missing.values().map(|symbol| symbol.count).sum::<u64>(), 3 * outside);

            let mut sums = longest.no_losses();
            longest.add_losses(&word, 3, &mut sums).unwrap();
            let can_be_cut = outside == 0;
            let whole = plain(&word, &tokens, &|_| true);
            for token in 0..tokens.len() as u32 {
                let used = can_be_cut && symbols.contains(&token);
                let times = symbols.iter().filter(|&&symbol| symbol == token).count() as u64;
                assert_eq!(sums.uses[token as usize], if can_be_cut { 3 * times } else { 0 });
                let without = plain(&word, &tokens, &|other| alive(other) && other != token);
                let lost = without.contains(&OUTSIDE);
                assert_eq!(sums.is_needed[token as usize], used && lost);
                let more = 3 * (without.len() as i64 - symbols.len() as i64);
                assert_eq!(sums.losses[token as usize], if used && !lost { more } else { 0 });
                let missed = !can_be_cut && !whole.contains(&OUTSIDE) && whole.contains(&token);
                assert_eq!(sums.is_missed[token as usize], missed);
            }

            let old = random.below(tokens.len() + 1) as u32;
            let all = LongestMatch::new(&tokens, "##", &[]).unwrap();
            let mut sums = all.no_uses();
            all.add_uses(&word, 2, old, &mut sums).unwrap();
            let blocked = whole.contains(&OUTSIDE)
                && !plain(&word, &tokens, &|token| token < old).contains(&OUTSIDE);
            for token in 0..tokens.len() as u32 {
                let times = whole.iter().filter(|&&symbol| symbol == token).count() as u64;
                let uses = if whole.contains(&OUTSIDE) { 0 } else { 2 * times };
                assert_eq!(sums.uses[token as usize], uses);
                assert_eq!(sums.is_harmful[token as usize], blocked && times > 0 && token >= old);
            }
        }
    }

    #[test]
    fn missing_symbols_know_where_they_are_first_and_sums_have_a_limit() {
        let tokens = ["a", "##b"].map(String::from);
        let longest = LongestMatch::new(&tokens, "##", &[]).unwrap();
        let mut missing = SymbolCounts::default();
        assert_eq!(longest.count_missing("abcéc", 2, 7, &mut missing), Ok(5));
        assert_eq!(missing[&('c', true)], SymbolCount { count: 4, first: (7, 2) });
        assert_eq!(missing[&('é', true)], SymbolCount { count: 2, first: (7, 3) });
        assert_eq!(longest.count_missing("b", i64::MAX as u64, 3, &mut missing), Ok(1));
        assert_eq!(missing[&('b', false)].first, (3, 0));
        assert_eq!(longest.count_missing("b", 1, 3, &mut missing), Err(Error::Overflow));
        let mut sums = longest.no_losses();
        assert_eq!(longest.add_losses("a", u64::MAX, &mut sums), Err(Error::Overflow));
        assert!(LongestMatch::new(&tokens, "##", &[2]).is_err());
    }
}
