//! How fast the kernel splits texts into segments, counts words, encodes and merges, on one thread and
//! without Arrow: `cargo bench -p wordpiece-core`. `benchmarks/` measures whole commands on real text, and
//! other libraries beside them.

use criterion::{BenchmarkId, Criterion as Bench, Throughput, criterion_group, criterion_main};
use wordpiece_core::base::error::Result;
use wordpiece_core::count::counter::WordCounter;
use wordpiece_core::count::word_lists::WordList;
use wordpiece_core::encode::encoder::{Encoder, EncoderOptions, Encoding};
use wordpiece_core::encode::matcher::UnkScope;
use wordpiece_core::encode::model::{Model, WordPiece};
use wordpiece_core::text::composed::Composed;
use wordpiece_core::text::marks::WordMarks;
use wordpiece_core::text::patterns::Pattern;
use wordpiece_core::text::pre_tokenize::TextOptions;
use wordpiece_core::text::rules::TextRules;
use wordpiece_core::text::segments::Begin;
use wordpiece_core::train::round::RoundRuns;
use wordpiece_core::train::score::Criterion;
use wordpiece_core::train::splits::{OUTSIDE, Splits};
use wordpiece_core::train::splitter::{SplitScratch, Splitter};
use wordpiece_core::train::tokens::Tokens;
use wordpiece_core::train::trainer::{TrainOptions, Trainer};
use wordpiece_testing::Random;

const BERT: TextOptions = TextOptions {
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: true,
    lowercase: true,
    split_punctuation: true,
};

/// Texts of this many words each.
const WORDS: usize = 200;

/// Texts of about two megabytes, in words of these characters whose frequencies follow Zipf's law.
fn corpus(characters: &str) -> Vec<String> {
    let mut random = Random::new(29);
    let characters: Vec<char> = characters.chars().collect();
    let words: Vec<String> = (0..60_000).map(|_| random.word(&characters, 12)).collect();
    let mut texts = Vec::new();
    let mut bytes = 0;
    while bytes < 2_000_000 {
        let mut text = String::new();
        for _ in 0..WORDS {
            let rank = (words.len() as f64).powf(random.below(1 << 20) as f64 / (1 << 20) as f64);
            text.push_str(&words[rank as usize - 1]);
            text.push_str(if random.below(12) == 0 { ", " } else { " " });
        }
        bytes += text.len();
        texts.push(text);
    }
    texts
}

fn scripts() -> [(&'static str, Vec<String>); 3] {
    [
        ("ASCII", corpus("etaoinshrdlucmfwypvbgk")),
        ("Cyrillic", corpus("оеаинтсрвлкмдпуяыьгз")),
        ("CJK", corpus("的一是不了人我在有他这为之大来以个中上们")),
    ]
}

fn bytes(texts: &[String]) -> Throughput {
    Throughput::Bytes(texts.iter().map(|text| text.len() as u64).sum())
}

fn words(texts: &[String]) -> WordList {
    let mut counter = WordCounter::new(BERT, usize::MAX);
    texts.iter().for_each(|text| counter.count(None, text));
    counter.take(1).expect("few words").swap_remove(0).words
}

/// Merges the words to a vocabulary of this size.
fn train(words: &WordList, vocab_size: usize) -> Result<Vec<String>> {
    let marks = WordMarks::Prefix("##".into());
    let mut characters: Vec<char> = words.iter().flat_map(|(word, _)| word.chars()).collect();
    characters.sort_unstable();
    characters.dedup();
    let mut tokens = vec!["[UNK]".to_string()];
    tokens.extend(characters.iter().flat_map(|c| [c.to_string(), format!("##{c}")]));
    let splitter = Splitter::new(tokens.iter().map(|token| &**token).zip(0..), marks.clone(), &[]);
    let (mut splits, mut split) = (Splits::default(), Vec::new());
    let mut scratch = SplitScratch::default();
    for (rank, (word, count)) in words.iter().enumerate() {
        splitter.split(word, &mut scratch, &mut split);
        assert!(!split.contains(&OUTSIDE));
        splits.push((rank as u64, 0), count, &split);
    }
    let mut runs = RoundRuns::default();
    runs.extend(&splits)?;
    let options = TrainOptions { vocab_size, criterion: Criterion::Pmi, min_pair_count: Some(2) };
    let mut trainer = Trainer::new(Tokens::new(tokens, marks, 100), options);
    trainer.start_whole_round(runs)?;
    trainer.run(usize::MAX);
    Ok(trainer.tokens().strings().iter().map(|token| token.to_string()).collect())
}

fn encoder(vocabulary: &[String]) -> Result<Encoder> {
    let tokens = vocabulary.iter().map(|token| &**token).zip(0..);
    Encoder::new(EncoderOptions {
        text: BERT.into(),
        model: Model::WordPiece(WordPiece::new(tokens, "##", 0, UnkScope::Word, 100)?),
        vocab_size: vocabulary.len(),
        unk_id: Some(0),
        added_tokens: Vec::new(),
        trimming: None,
    })
}

fn segmentation(bench: &mut Bench) {
    let mut group = bench.benchmark_group("segmentation");
    let gpt2 = TextRules::Composed(Composed::gpt2(false).into());
    let rules = [("BERT", TextRules::from(BERT)), ("GPT-2", gpt2)];
    let patterns = [
        ("cl100k", Pattern::CL100K),
        ("Qwen 2", Pattern::QWEN2),
        ("o200k", Pattern::O200K),
        ("Tekken", Pattern::TEKKEN),
        ("Kimi K2", Pattern::KIMI_K2),
        ("DeepSeek V3", Pattern::DEEPSEEK_V3),
    ];
    for (script, texts) in scripts() {
        group.throughput(bytes(&texts));
        let mut measure = |name: &str, segments: &dyn Fn(&str) -> usize| {
            group.bench_function(BenchmarkId::new(name, script), |bencher| {
                bencher.iter(|| texts.iter().map(|text| segments(text)).sum::<usize>());
            });
        };
        for (name, rules) in &rules {
            measure(name, &|text| {
                let mut segments = 0;
                rules.segments(text, Begin::Text, |_| segments += 1);
                segments
            });
        }
        for (name, pattern) in &patterns {
            measure(name, &|text| {
                let mut segments = 0;
                pattern.segments(text, |_| segments += 1);
                segments
            });
        }
    }
}

fn counting(bench: &mut Bench) {
    let mut group = bench.benchmark_group("counting");
    for (script, texts) in scripts() {
        group.throughput(bytes(&texts));
        group.bench_function(script, |bencher| bencher.iter(|| words(&texts)));
    }
}

fn encoding(bench: &mut Bench) {
    let mut group = bench.benchmark_group("encoding");
    for (script, texts) in scripts() {
        let vocabulary = train(&words(&texts), 8_000).expect("few words");
        let encoder = encoder(&vocabulary).expect("few tokens");
        let mut encoding = Encoding::default();
        let mut encode = |encoder: &Encoder| {
            let mut session = encoder.session(0);
            texts.iter().for_each(|text| session.encode(text, false, &mut encoding));
        };
        group.throughput(bytes(&texts));
        group.bench_function(BenchmarkId::new("warm", script), |bencher| {
            bencher.iter(|| encode(&encoder));
        });
        group.bench_function(BenchmarkId::new("cold", script), |bencher| {
            let new = || self::encoder(&vocabulary).expect("few tokens");
            bencher.iter_with_setup(new, |encoder| {
                encode(&encoder);
                encoder // its memory is freed after the time is taken
            });
        });
    }
}

fn merging(bench: &mut Bench) {
    let mut group = bench.benchmark_group("merging");
    group.sample_size(10);
    // A word of Chinese is one character, so that nothing would be merged.
    for (script, texts) in scripts().into_iter().filter(|(script, _)| *script != "CJK") {
        let words = words(&texts);
        group.bench_function(BenchmarkId::new("8,000 tokens", script), |bencher| {
            bencher.iter(|| train(&words, 8_000));
        });
    }
}

criterion_group!(kernel, segmentation, counting, encoding, merging);
criterion_main!(kernel);
