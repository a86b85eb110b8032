use super::*;
use wordpiece_testing::Random;

fn bpe(tokens: &[&str], merges: &[(u32, u32)]) -> Result<Bpe> {
    tied_bpe(tokens, merges, &[])
}

fn tied_bpe(tokens: &[&str], merges: &[(u32, u32)], tied: &[u32]) -> Result<Bpe> {
    let vocabulary = Vocabulary { tokens, unk_id: None, hidden: &HashSet::default() };
    Bpe::new(vocabulary, BpeOptions { merges, tied, ..BpeOptions::default() })
}

/// Return a random vocabulary over these letters, and its merges.
fn random_bpe(
    random: &mut Random,
    letters: &[char],
    merges: usize,
) -> (Vec<String>, Vec<(u32, u32)>) {
    let mut tokens: Vec<String> = letters.iter().map(char::to_string).collect();
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

/// Tokenize a word by the definition.
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
    for round in 0..3_000 {
        let letters = [['a', 'b', 'c', 'é'], ['字', '文', '本', 'a']][round % 2];
        let merges = random.below(30);
        let (tokens, merges) = random_bpe(&mut random, &letters, merges);
        let vocabulary: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let bpe = bpe(&vocabulary, &merges).unwrap();
        for length in [1, 2, 5, 12, 39, 41, 90] {
            let [a, b, c, d] = letters;
            let word = random.word(&[a, b, c, d, 'x'], length);
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

#[test]
fn hidden_and_equal_tokens_are_merged_like_others() {
    let (mut random, mut without_merging) = (Random::new(9), 0);
    for _ in 0..1_000 {
        let letters = ['a', 'b', 'c', 'd'];
        let (mut tokens, merges) = random_bpe(&mut random, &letters, 30);
        let hidden: HashSet<u32> = [random.below(tokens.len()) as u32].into_iter().collect();
        tokens.push(random.choose(&tokens).clone());
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let vocabulary = Vocabulary { tokens: &tokens, unk_id: None, hidden: &hidden };
        for word_boundary in [WordBoundary::None, WordBoundary::Bytes] {
            let options = BpeOptions { merges: &merges, word_boundary, ..BpeOptions::default() };
            let bpe = Bpe::new(vocabulary, options).unwrap();
            without_merging += usize::from(bpe.longest.is_some());
            for length in [5, 40, 90] {
                let word = random.word(&['a', 'b', 'c', 'd', 'a', 'x'], length);
                let (mut scratch, mut found, mut merged) = Default::default();
                bpe.tokens(&word, &mut scratch, &mut found);
                bpe.merged_tokens(&word, &mut scratch, &mut merged);
                assert_eq!(found, merged, "{word} {tokens:?} {merges:?} {hidden:?}");
            }
        }
    }
    assert!((200..2_000).contains(&without_merging), "{without_merging}");
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
        let each = [1, 1, 3][random.below(3)]; // the number of tokens of one rank
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
fn pairs_that_repeat_in_a_long_word_are_looked_up_once() {
    // The word begins like a token of each length, and all of them but the first are rejected.
    let letters: Vec<char> = ('\u{4E00}'..).take(100).collect();
    let mut tokens: Vec<String> = letters.iter().map(char::to_string).collect();
    tokens.push([letters[99], letters[0]].iter().collect());
    let mut merges = vec![(99, 0)];
    for (length, right) in (2..).zip(1..100) {
        let left = if right == 1 { 0 } else { tokens.len() as u32 - 1 };
        tokens.push(letters[..length].iter().collect());
        merges.push((left, right));
    }
    let vocabulary: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let bpe = bpe(&vocabulary, &merges).unwrap();
    let all: String = letters.iter().collect();
    let word = format!("{all}{all}").repeat(500);
    let (mut scratch, mut found, mut expected) = Default::default();
    longest::PROBES.set(0);
    bpe.tokens(&word, &mut scratch, &mut found);
    assert!(longest::PROBES.get() < 20_000, "{}", longest::PROBES.get());
    bpe.merged_tokens(&word, &mut scratch, &mut expected);
    assert_eq!(found, expected);
}

#[test]
fn merges_that_make_no_sense_are_refused() {
    let vocabulary = ["a", "b", "ab"];
    for merges in [vec![(0, 3)], vec![(1, 0)], vec![(0, 1), (0, 1)]] {
        let bpe = bpe(&vocabulary, &merges);
        assert!(matches!(bpe, Err(Error::Data(_))));
    }
}

/// Return a random vocabulary of bytes and its merges. No merge before the first merge that crosses a space
/// needs the token of a later merge.
fn random_superwords(random: &mut Random) -> (Vec<String>, Vec<(u32, u32)>) {
    let mut tokens: Vec<String> = (0..=u8::MAX).map(|b| byte_character(b).to_string()).collect();
    let mut pairs = Vec::new();
    let letters: Vec<u32> = "abc\n\u{e9}".bytes().map(u32::from).collect();
    let (words, all) = (random.below(20), 40);
    let mut used: Vec<u32> = letters.iter().copied().chain([u32::from(b' ')]).collect();
    for at in 0..all {
        let [left, right] = [0; 2].map(|_| *random.choose(&used));
        let made = tokens[left as usize].clone() + &tokens[right as usize];
        let bytes = bytes_of(&made).unwrap();
        let crosses =
            bytes.windows(2).any(|pair| pair[1] == b' ' && !pair[0].is_ascii_whitespace());
        if (at < words && crosses) || tokens.contains(&made) || made.len() > 12 {
            continue;
        }
        pairs.push((left, right));
        used.push(tokens.len() as u32);
        tokens.push(made);
    }
    (tokens, pairs)
}

#[test]
fn words_and_then_pieces_are_merged_like_pieces_at_once() {
    let (mut random, mut divided, mut crossing) = (Random::new(6), 0, 0);
    for _ in 0..2_000 {
        let (tokens, merges) = random_superwords(&mut random);
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let vocabulary = Vocabulary { tokens: &tokens, unk_id: None, hidden: &HashSet::default() };
        let word_boundary = WordBoundary::Bytes;
        let options = BpeOptions { merges: &merges, word_boundary, ..BpeOptions::default() };
        let bpe = Bpe::new(vocabulary, options.clone()).unwrap();
        let Some(superwords) = Superwords::new(vocabulary, &options, &bpe).unwrap() else {
            continue;
        };
        divided += 1;
        let pieces: Vec<String> = [1, 3, 12, 39, 60, 90]
            .map(|length| random.word(&['a', 'b', 'c', 'a', ' ', ' ', '\n', 'é'], length))
            .into();
        let (mut scratch, mut found) = (BpeScratch::default(), Vec::new());
        let (mut ids, mut ends, mut expected) = (vec![7], Vec::new(), vec![7]);
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            Superwords::each_word(piece.as_bytes(), 0, piece.len(), |start, end| {
                superwords.tokens(&piece[start..end], &mut scratch, &mut found);
                ids.extend(found.iter().map(|token| token.id));
            });
            ends.push(ids.len());
            bpe.tokens(piece, &mut scratch, &mut found);
            expected.extend(found.iter().map(|token| token.id));
        }
        let words = ids.len();
        let behind = superwords.merge(&mut ids, 1, &ends, &mut scratch);
        assert_eq!(ids, expected, "{pieces:?} {tokens:?} {merges:?}");
        assert_eq!(behind, ids.len());
        crossing += usize::from(ids.len() < words);
    }
    assert!(divided > 1_000 && crossing > 800, "{divided} {crossing}");
}

#[test]
fn tokens_behind_the_last_piece_are_not_merged() {
    let tokens: Vec<String> = (0..=u8::MAX).map(|b| byte_character(b).to_string()).collect();
    let mut tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    tokens.push("aĠ");
    let vocabulary = Vocabulary { tokens: &tokens, unk_id: None, hidden: &HashSet::default() };
    let [a, space] = [b'a', b' '].map(u32::from);
    let options = BpeOptions {
        merges: &[(a, space)],
        word_boundary: WordBoundary::Bytes,
        ..BpeOptions::default()
    };
    let bpe = Bpe::new(vocabulary, options.clone()).unwrap();
    let superwords = Superwords::new(vocabulary, &options, &bpe).unwrap().unwrap();
    let mut ids = vec![a, space, a, a, space, a, space];
    let until = superwords.merge(&mut ids, 0, &[3, 5], &mut BpeScratch::default());
    assert_eq!((until, ids), (3, vec![256, a, 256, a, space]));
}
