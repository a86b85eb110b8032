use super::*;
use wordpiece_testing::Random;

fn bpe(tokens: &[&str], merges: &[(u32, u32)]) -> Result<Bpe> {
    tied_bpe(tokens, merges, &[])
}

fn tied_bpe(tokens: &[&str], merges: &[(u32, u32)], tied: &[u32]) -> Result<Bpe> {
    let vocabulary = Vocabulary { tokens, unk_id: None, hidden: &HashSet::default() };
    Bpe::new(vocabulary, BpeOptions { merges, tied, ..BpeOptions::default() })
}

/// A random vocabulary over some letters, and its merges.
fn random_bpe(random: &mut Random, merges: usize) -> (Vec<String>, Vec<(u32, u32)>) {
    let mut tokens: Vec<String> = ["a", "b", "c", "é"].map(String::from).into();
    let mut pairs = Vec::new();
    for _ in 0..merges {
        let [left, right] = [0; 2].map(|_| random.below(tokens.len()) as u32);
        let made = tokens[left as usize].clone() + &tokens[right as usize];
        if pairs.contains(&(left, right)) || made.len() > 20 {
            continue;
        }
        pairs.push((left, right));
        if !tokens.contains(&made) {
            tokens.push(made);
        }
    }
    (tokens, pairs)
}

/// The same by its definition.
fn plainly(tokens: &[String], merges: &[(u32, u32)], word: &str) -> Vec<u32> {
    let id = |token: &str| tokens.iter().position(|t| t == token).map(|id| id as u32);
    let mut ids: Vec<u32> = word.chars().filter_map(|c| id(&c.to_string())).collect();
    loop {
        let ranked = ids.windows(2).enumerate().filter_map(|(at, pair)| {
            let rank = merges.iter().position(|&(a, b)| [a, b] == pair)?;
            Some((rank, at))
        });
        let Some((rank, at)) = ranked.min() else { return ids };
        let (left, right) = merges[rank];
        let made = tokens[left as usize].clone() + &tokens[right as usize];
        ids.splice(at..at + 2, id(&made));
    }
}

#[test]
fn short_and_long_words_are_merged_as_by_definition() {
    let (mut random, mut without_merging) = (Random::new(1), 0);
    for _ in 0..3_000 {
        let merges = random.below(30);
        let (tokens, merges) = random_bpe(&mut random, merges);
        let vocabulary: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let bpe = bpe(&vocabulary, &merges).unwrap();
        for length in [1, 2, 5, 12, 39, 41, 90] {
            let word = random.word(&['a', 'b', 'c', 'é', 'x'], length);
            let (mut scratch, mut found) = (BpeScratch::default(), Vec::new());
            bpe.tokens(&word, &mut scratch, &mut found);
            let ids: Vec<u32> = found.iter().map(|token| token.id).collect();
            assert_eq!(ids, plainly(&tokens, &merges, &word), "{word} {tokens:?} {merges:?}");
            without_merging += usize::from(bpe.longest.is_some());
            let mut merged = Vec::new();
            bpe.merged_tokens(&word, &mut scratch, &mut merged);
            assert_eq!(merged, found);
            bpe.begin(&word, &mut scratch);
            bpe.merge_long(&mut scratch);
            let mut long = Vec::new();
            scratch.push_tokens(&mut long);
            assert_eq!(long, found);
        }
    }
    assert!((20_500..21_000).contains(&without_merging), "{without_merging}");
}

/// The tokens of a word, where of all pairs that make a token the one of the lowest rank is merged, the
/// leftmost first.
fn ranked_plainly(tokens: &[String], ranks: &[u32], word: &str) -> Vec<u32> {
    let id = |token: &str| tokens.iter().position(|t| t == token).map(|id| id as u32);
    let mut parts: Vec<String> = word.chars().map(String::from).collect();
    loop {
        let made = parts.windows(2).enumerate();
        let ranked = made.filter_map(|(at, pair)| Some((ranks[id(&pair.concat())? as usize], at)));
        let Some((_, at)) = ranked.min() else { break };
        let right = parts.remove(at + 1);
        parts[at] += &right;
    }
    parts.iter().filter_map(|part| id(part)).collect()
}

#[test]
fn tokens_that_are_ranked_in_any_order_are_merged_as_by_definition() {
    let (mut random, mut without_merging) = (Random::new(5), 0);
    for _ in 0..3_000 {
        let mut tokens: Vec<String> = ["a", "b", "c"].map(String::from).into();
        for _ in 0..random.below(20) {
            let length = 2 + random.below(5);
            let token = random.word(&['a', 'b', 'c'], length);
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
        if random.below(2) == 0 {
            tokens.sort_by_key(String::len); // as of a training
        }
        let vocabulary: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let bytes: Vec<&[u8]> = tokens.iter().map(String::as_bytes).collect();
        let each = [1, 1, 3][random.below(3)]; // so many tokens have one rank
        let ranks: Vec<u32> = (0..tokens.len() as u32).map(|id| id / each).collect();
        let pairs = merges_of_ranks(&bytes, &ranks, random.below(2) == 0).unwrap();
        let rank_of = |&(left, right): &(u32, u32)| {
            let made = tokens[left as usize].clone() + &tokens[right as usize];
            ranks[tokens.iter().position(|token| *token == made).unwrap()]
        };
        let is_tied = |pairs: &[(u32, u32)]| rank_of(&pairs[0]) == rank_of(&pairs[1]);
        let tied = (1..).zip(pairs.windows(2)).filter(|(_, pairs)| is_tied(pairs));
        let tied: Vec<u32> = tied.map(|(at, _)| at).collect();
        let bpe = tied_bpe(&vocabulary, &pairs, &tied).unwrap();
        without_merging += usize::from(bpe.longest.is_some());
        for length in [1, 2, 5, 12, 39, 41, 90] {
            let word = random.word(&['a', 'b', 'c'], length);
            let (mut scratch, mut found) = (BpeScratch::default(), Vec::new());
            bpe.tokens(&word, &mut scratch, &mut found);
            let ids: Vec<u32> = found.iter().map(|token| token.id).collect();
            assert_eq!(ids, ranked_plainly(&tokens, &ranks, &word), "{word} {tokens:?}");
            if let Some(longest) = &bpe.longest {
                assert!(longest.tokenize(word.as_bytes(), &bpe.merges, &mut scratch.longest));
                assert_eq!(scratch.longest.ids, ids, "{word} {tokens:?}");
            }
        }
    }
    assert!((1_000..2_500).contains(&without_merging), "{without_merging}");
}

#[test]
fn a_long_word_takes_work_in_proportion_to_its_length() {
    let tokens: Vec<String> = (0..12).map(|power| "a".repeat(1 << power)).collect();
    let vocabulary: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let merges: Vec<(u32, u32)> = (0..11).map(|id| (id, id)).collect();
    let bpe = bpe(&vocabulary, &merges).unwrap();
    let length = 1 << 20;
    let (mut scratch, mut found) = (BpeScratch::default(), Vec::new());
    bpe.tokens(&"a".repeat(length), &mut scratch, &mut found);
    assert!(found.iter().all(|token| token.id == 11 && token.length == 1 << 11));
    assert_eq!(found.len(), length >> 11);
    found.clear();
    bpe.merged_tokens(&"a".repeat(length), &mut scratch, &mut found);
    assert_eq!(found.len(), length >> 11);
    assert!(scratch.work < 8 * length, "{}", scratch.work);
}

#[test]
fn merges_that_make_no_sense_are_refused() {
    let vocabulary = ["a", "b", "ab"];
    for merges in [vec![(0, 3)], vec![(1, 0)], vec![(0, 1), (0, 1)]] {
        let bpe = bpe(&vocabulary, &merges);
        assert!(matches!(bpe, Err(Error::Data(_))));
    }
}
