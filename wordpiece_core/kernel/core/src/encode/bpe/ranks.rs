//! Merges of vocabularies that have none, but a rank for each token, as tiktoken's have.

use foldhash::HashMap;

use super::BpeScratch;
use super::merge_table::MergeTable;
use crate::base::trie::NONE;

/// The merge that makes each token, in the order of ranks, where two tokens of lower ranks make it: those
/// that its bytes become by all merges before. Two others that would make it are never side by side.
///
/// # Arguments
///
/// * `tokens` - The bytes of the token of each rank, which is its id, too; empty where there is none.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::bpe::merges_of_ranks;
///
/// let tokens: [&[u8]; 6] = [b"a", b"b", b"c", b"ab", b"bc", b"abc"];
/// assert_eq!(merges_of_ranks(&tokens), [(0, 1), (1, 2), (3, 2)]);
/// ```
pub fn merges_of_ranks(tokens: &[&[u8]]) -> Vec<(u32, u32)> {
    let ids: HashMap<&[u8], u32> = tokens.iter().copied().zip(0..).collect();
    let mut table = MergeTable::new(tokens.len());
    let mut merges = Vec::new();
    let (mut scratch, mut parts) = (BpeScratch::default(), Vec::new());
    for (id, token) in (0..).zip(tokens) {
        parts.clear();
        parts.extend(token.chunks(1).map(|byte| ids.get(byte).copied().unwrap_or(NONE)));
        if parts.contains(&NONE) {
            continue; // such a byte stays a part of its own
        }
        scratch.merge_all(&mut parts, |left, right, _| table.rank(left, right), |rank| rank);
        if let [left, right] = parts[..]
            && table.insert(left, right, id)
        {
            merges.push((left, right));
        }
    }
    merges
}
