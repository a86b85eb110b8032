//! Long words are segmented in windows as in one, in little memory.

use super::*;
use wordpiece_testing::{Random, peak_of};

fn unigram(tokens: &[&str], scores: &[f64], of_sentencepiece: bool) -> Unigram {
    let vocabulary = Vocabulary { tokens, unk_id: Some(0), hidden: &HashSet::default() };
    let options = UnigramOptions { scores, of_sentencepiece, ..UnigramOptions::default() };
    Unigram::new(vocabulary, options).unwrap()
}

/// The pieces of a word, and the sum at its end, if they are found in such windows.
fn best<S: ScoreSum>(
    unigram: &Unigram,
    word: &str,
    scores: &[S],
    unk: S,
    window: usize,
) -> (Vec<Piece>, S) {
    let (mut nodes, mut pieces) = (Vec::new(), Vec::new());
    unigram.find_best(word, scores, unk, S::default(), window, &mut nodes, &mut pieces);
    (pieces, nodes.last().unwrap().score)
}

#[test]
fn words_are_cut_in_windows_as_in_one() {
    let mut random = Random::new(12);
    let letters = ['a', 'b', 'é', '中', 'x'];
    for _ in 0..2_000 {
        let mut tokens = vec!["<unk>".to_string(), "▁".to_string()];
        for _ in 0..1 + random.below(12) {
            let token = random.word(&letters[..4], 6);
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
        // Few scores, so that sums are often equal; and large ones, so that they are counted anew.
        let large = if random.below(2) == 0 { 1.0 } else { 3_000.1 };
        let mut score = || -large * (1 + random.below(4)) as f64;
        let scores: Vec<f64> = tokens.iter().map(|_| score()).collect();
        let listed: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let unigram = unigram(&listed, &scores, true);
        let kinds = 1 + random.below(letters.len());
        let word = random.word(&letters[..kinds], 400);
        let rounded: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
        let wide = |window| best(&unigram, &word, &scores, -9.0, window);
        let narrow = |window| best(&unigram, &word, &rounded, -9.0f32, window);
        let whole = (wide(1 << 20), narrow(1 << 20));
        for window in [1, 7, 30, 100] {
            assert_eq!((wide(window), narrow(window)), whole, "{word} {tokens:?} {scores:?}");
        }
    }
}

#[test]
fn long_words_take_memory_for_their_tokens_alone() {
    let tokens = ["<unk>", "▁", "abcdefghij", "abcde", "fghij", "ija", "cdef"];
    let unigram = unigram(&tokens, &[0.0, -1.0, -1.0, -1.1, -1.2, -3.0, -1.0], false);
    let length = 1_000_000;
    let word: String = "abcdefghij".chars().cycle().take(length).collect();
    let (mut scratch, mut found) = (UnigramScratch::default(), Vec::new());
    let (peak, ()) = peak_of(|| unigram.tokens(&word, &mut scratch, &mut found));
    assert_eq!(found.len(), length / 10);
    let of_tokens = length / 10 * (3 * size_of::<Piece>() + size_of::<Token>());
    let of_window = 3 * (WINDOW + 100) * size_of::<Node<f64>>();
    assert!(peak < of_tokens + of_window, "{peak}");
}

#[test]
fn long_words_are_drawn_in_windows_as_in_one() {
    let tokens = ["<unk>", "▁", "a", "ab", "aba", "b", "é", "éab", "bé"];
    let unigram = unigram(&tokens, &[-1.0; 9], false);
    let weights = unigram.weights(0.5);
    let scratch = &mut UnigramScratch::default();
    let mut random = Random::new(3);
    for seed in 0..300 {
        let word = random.word(&['a', 'b', 'é', 'x'], 200);
        let drawn = [1 << 20, 1, 2, 7, 50].map(|window| {
            let mut random = SplitMix64::of(seed, b"");
            unigram.draw(&word, &weights, &mut random, window, scratch);
            scratch.pieces.clone()
        });
        assert_eq!(drawn[0].last().map_or(0, |piece| piece.1), word.len() as u32);
        assert!(drawn.iter().all(|pieces| *pieces == drawn[0]), "{word}");
    }
    let word = "ab".repeat(500_000);
    let mut random = SplitMix64::of(1, b"");
    let (peak, ()) = peak_of(|| unigram.draw(&word, &weights, &mut random, WINDOW, scratch));
    assert!(peak < 70 * word.len(), "{peak}");
}

#[test]
fn words_are_drawn_by_scores_of_any_size() {
    for score in [1e300, -1e300, 1e19, -1e19, f64::MAX] {
        let unigram = unigram(&["<unk>", "▁", "a", "aa"], &[0.0, score, score, -3.0], false);
        for alpha in [0.5, 1.0, 1e9] {
            let (weights, mut tokens) = (unigram.weights(alpha), Vec::new());
            let mut random = crate::encode::sampling::SplitMix64::of(1, b"a");
            let scratch = &mut UnigramScratch::default();
            unigram.sampled_tokens("▁aaaa", &weights, &mut random, scratch, &mut tokens);
            let lengths: u32 = tokens.iter().map(|token| token.length).sum();
            assert!((3..=5).contains(&tokens.len()) && lengths == 7, "{score} {alpha}");
        }
    }
}
