//! Merges of vocabularies that have none, but a rank for each token, as tiktoken's have.

use foldhash::HashMap;

use super::BpeScratch;
use super::merge_table::MergeTable;
use crate::base::error::{Error, Result};
use crate::base::trie::NONE;

/// The merge that makes each token, in the order of ranks, where one does. Merges of later ranks may make
/// its parts.
///
/// Merging by ranks makes a token only of two symbols that are side by side. No merge has been made across
/// the ends of both: so what is between those ends was merged as the token alone is, and that comes to one
/// pair. Its symbols are shorter tokens, whose merges are known when tokens are taken by their length.
///
/// # Arguments
///
/// * `tokens` - The bytes of the tokens, by id; empty where there is none.
/// * `ranks` - Their ranks. Among tokens of one rank, the leftmost in a word is made first.
/// * `by_character` - Whether a token begins as its characters, not as its bytes.
///
/// # Errors
///
/// Returns [`Error::Data`] if there is not one rank for each token.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::merges_of_ranks;
///
/// let tokens: [&[u8]; 6] = [b"a", b"b", b"c", b"ab", b"bc", b"abc"];
/// let ranks = [0, 1, 2, 3, 4, 5];
/// assert_eq!(merges_of_ranks(&tokens, &ranks, false).unwrap(), [(0, 1), (1, 2), (3, 2)]);
/// ```
pub fn merges_of_ranks(
    tokens: &[&[u8]],
    ranks: &[u32],
    by_character: bool,
) -> Result<Vec<(u32, u32)>> {
    if tokens.len() != ranks.len() {
        return Err(Error::data(format!("ranks: {} of {} tokens", ranks.len(), tokens.len())));
    }
    let ids: HashMap<&[u8], u32> = tokens.iter().copied().zip(0..).collect();
    let mut by_length: Vec<u32> = (0..).take(tokens.len()).collect();
    by_length.sort_by_key(|&id| tokens[id as usize].len());
    let mut table = MergeTable::new(tokens.len());
    let mut made = HashMap::default();
    let mut merges = Vec::new();
    let (mut scratch, mut parts) = (BpeScratch::default(), Vec::new());
    for id in by_length {
        parts.clear();
        let is_begun = |byte: &u8| by_character && byte & 0xC0 == 0x80;
        let symbols = tokens[id as usize].chunk_by(|_, byte| is_begun(byte));
        parts.extend(symbols.map(|symbol| ids.get(symbol).copied().unwrap_or(NONE)));
        if parts.contains(&NONE) {
            continue; // such a symbol stays a part of its own
        }
        let rank = |left, right, _| table.rank(left, right);
        scratch.merge_all(&mut parts, rank, |_, left, right| made[&(left, right)]);
        if let [left, right] = parts[..]
            && table.insert(left, right, ranks[id as usize])
        {
            made.insert((left, right), id);
            merges.push((ranks[id as usize], id, (left, right)));
        }
    }
    merges.sort_unstable();
    Ok(merges.into_iter().map(|(.., pair)| pair).collect())
}
