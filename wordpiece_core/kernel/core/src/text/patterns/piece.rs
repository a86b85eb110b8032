//! One match after the other, for all characters. It follows the expressions, alternative by
//! alternative; [`block`](super::block) does the same for many bytes in parallel.

use super::classes::{Class, Classes};
use super::{Contractions, Lead, Pattern, Tail, Words};

impl Pattern {
    /// Return the end of the piece that begins at byte `at` of a text.
    pub(super) fn piece_end(&self, classes: Classes, text: &[u8], at: usize) -> usize {
        let (class, next) = classes.at(text, at);
        let following = classes.get_at(text, next).filter(|&other| self.is_joined(class, other));
        let is_following = |other: fn(&Pattern, Class) -> bool| {
            following.is_some_and(|following| other(self, following))
        };
        if self.words == Words::NotHan && class.is(Class::HAN) {
            return classes.run_end(text, next, |class| class.is(Class::HAN));
        }
        if class.is(Class::NUMBER) {
            return self.number_end(classes, text, at);
        }
        if self.is_word(class) {
            return self.word_end(classes, text, at);
        }
        if text[at] == b'\''
            && let length @ 1.. = self.contraction_before_word(&text[at..])
        {
            return at + length;
        }
        if self.is_lead(text[at], class) && is_following(Pattern::is_word) {
            return self.word_end(classes, text, next);
        }
        if self.words == Words::DeepSeek
            && text[at].is_ascii_punctuation()
            && text.get(next).is_some_and(u8::is_ascii_alphabetic)
        {
            let letters = text[next..].iter().take_while(|byte| byte.is_ascii_alphabetic());
            return next + letters.count();
        }
        if text[at] == b' ' && is_following(Pattern::is_other) {
            return self.others_end(classes, text, next);
        }
        if text[at] == b' ' && self.lead == Lead::Space && is_following(Pattern::is_number) {
            return self.number_end(classes, text, next);
        }
        if class.is(Class::SPACE) {
            return self.white_space_end(classes, text, at, false);
        }
        if self.is_other(class) {
            return self.others_end(classes, text, at);
        }
        self.unmatched_end(classes, text, at)
    }

    /// Return the end of the first piece of a text if a space is put before the text, which has none.
    pub(in crate::text) fn end_behind_space(&self, text: &str) -> usize {
        let (classes, text) = (Classes::get(), text.as_bytes());
        let Some(class) = classes.get_at(text, 0) else { return 0 };
        match class {
            _ if class.is(Class::SPACE) => self.white_space_end(classes, text, 0, true),
            _ if self.is_word(class) => self.word_end(classes, text, 0),
            _ if self.is_other(class) => self.others_end(classes, text, 0),
            _ if self.lead == Lead::Space => self.number_end(classes, text, 0),
            _ => 0,
        }
    }

    fn is_number(&self, class: Class) -> bool {
        class.is(Class::NUMBER)
    }

    /// Return true if a character is part of words.
    pub(super) fn is_word(&self, class: Class) -> bool {
        match self.words {
            Words::Letters => class.is(Class::LETTER),
            Words::NotHan => class.is(Class::LETTER | Class::MARK) && !class.is(Class::HAN),
            Words::LettersAndMarks | Words::Cased | Words::DeepSeek => {
                class.is(Class::LETTER | Class::MARK)
            }
        }
    }

    /// Return true if a character is part of runs other than white space, letters and numbers.
    fn is_other(&self, class: Class) -> bool {
        match self.words {
            Words::Letters | Words::Cased | Words::NotHan => {
                !class.is(Class::LETTER | Class::NUMBER | Class::SPACE)
            }
            Words::LettersAndMarks => {
                !class.is(Class::LETTER | Class::MARK | Class::NUMBER | Class::SPACE)
            }
            Words::DeepSeek => class.is(Class::SIGN),
        }
    }

    /// Return true if a character that is not part of words may precede a word in its piece.
    pub(super) fn is_lead(&self, byte: u8, class: Class) -> bool {
        match self.lead {
            Lead::Space => byte == b' ',
            Lead::Any => {
                let never = if self.words == Words::DeepSeek { Class::SIGN } else { Class::NONE };
                !matches!(byte, b'\r' | b'\n') && !class.is(never)
            }
        }
    }

    /// Return true if no `Split` before the last one splits between characters of these classes.
    fn is_joined(&self, class: Class, following: Class) -> bool {
        self.words != Words::DeepSeek
            || !following.is(Class::NUMBER) && class.agrees(following, Class::CJK)
    }

    pub(super) fn contraction_before_word(&self, text: &[u8]) -> usize {
        match self.contractions {
            Contractions::Lowercase => contraction(text, false),
            Contractions::BeforeWords => contraction(text, true),
            Contractions::None | Contractions::BehindWords => 0,
        }
    }

    /// Return the end of the numbers that begin at `at`.
    fn number_end(&self, classes: Classes, text: &[u8], at: usize) -> usize {
        let mut left = match self.digits {
            Pattern::ANY_DIGITS => usize::MAX,
            digits => digits as usize,
        };
        classes.run_end(text, at, |class| {
            let is_part = left > 0 && class.is(Class::NUMBER);
            left -= is_part as usize;
            is_part
        })
    }

    /// Return the end of the word whose first letter or mark is at `at`.
    fn word_end(&self, classes: Classes, text: &[u8], at: usize) -> usize {
        let end = match self.words {
            Words::Cased | Words::NotHan => self.cased_end(classes, text, at),
            Words::DeepSeek => {
                let (first, next) = classes.at(text, at);
                classes.run_end(text, next, |class| {
                    self.is_word(class) && class.agrees(first, Class::CJK)
                })
            }
            Words::Letters => classes.run_end(text, at, |class| class.is(Class::LETTER)),
            Words::LettersAndMarks => {
                classes.run_end(text, at, |class| class.is(Class::LETTER | Class::MARK))
            }
        };
        if self.contractions == Contractions::BehindWords {
            return end + contraction(&text[end..], true);
        }
        end
    }

    /// Return the end of `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`, or if it does not
    /// match, of the expression with `+` and `*` instead.
    fn cased_end(&self, classes: Classes, text: &[u8], at: usize) -> usize {
        let (upper, lower) = (Class::UPPER | Class::MARK, Class::LOWER | Class::MARK);
        let mut without_case = at;
        let mut end = at;
        while end < text.len() {
            let (class, next) = classes.at(text, end);
            if !self.is_word(class) {
                break;
            }
            if !class.is(upper) {
                return classes.run_end(text, next, |class| class.is(lower) && self.is_word(class));
            }
            end = next;
            if class.is(lower) {
                without_case = end;
            }
        }
        // The last letter must not be an uppercase one if there are others.
        if without_case > at { without_case } else { end }
    }

    /// Return the end of the run of others that begins at `at`, with the line ends after it.
    fn others_end(&self, classes: Classes, text: &[u8], at: usize) -> usize {
        let (first, next) = classes.at(text, at);
        let end = classes
            .run_end(text, next, |class| self.is_other(class) && self.is_joined(first, class));
        let is_tail = |byte: u8| match self.tail {
            Tail::None => false,
            Tail::LineEnds => matches!(byte, b'\r' | b'\n') && self.is_joined(first, Class::SPACE),
            Tail::LineEndsAndSlashes => matches!(byte, b'\r' | b'\n' | b'/'),
        };
        end + text[end..].iter().take_while(|&&byte| is_tail(byte)).count()
    }

    /// Return the end of the piece of white space that begins at `at`. `is_more`: true if a space precedes it, so
    /// that the piece may end at `at`.
    fn white_space_end(&self, classes: Classes, text: &[u8], at: usize, is_more: bool) -> usize {
        let (mut end, mut last, mut line_end) = (at, at, None);
        let mut is_last = true;
        while end < text.len() {
            let (class, next) = classes.at(text, end);
            if !class.is(Class::SPACE) {
                is_last = !self.is_joined(Class::SPACE, class);
                break;
            }
            if matches!(text[end], b'\r' | b'\n') {
                line_end = Some(next);
            }
            (last, end) = (end, next);
        }
        match line_end {
            _ if is_last && self.joins_last_spaces => end,
            Some(line_end) if self.lead == Lead::Any => line_end,
            // The last character belongs to what follows, unless it is the only one.
            _ if !is_last && (last > at || is_more) => last,
            _ => end,
        }
    }

    /// Return the end of the characters from `at` on that no alternative matches.
    fn unmatched_end(&self, classes: Classes, text: &[u8], at: usize) -> usize {
        let (first, mut end) = classes.at(text, at);
        let mut last = at;
        while end < text.len() {
            let (class, next) = classes.at(text, end);
            let joined = self.is_joined(first, class);
            if joined && self.is_word(class) {
                // The last of them is the first of a word.
                return if last > at { last } else { end };
            }
            if !joined || self.is_other(class) || class.is(Class::SPACE) {
                break;
            }
            (last, end) = (end, next);
        }
        end
    }
}

/// The length of the `'s`, `'ll` or the like that the bytes begin with; 0 if there is none. If case
/// does not matter, `ſ` is an `s`.
#[inline]
pub(super) fn contraction(bytes: &[u8], any_case: bool) -> usize {
    let letter = |index: usize| match bytes.get(index) {
        Some(byte) if any_case => byte.to_ascii_lowercase(),
        Some(&byte) => byte,
        None => 0,
    };
    match (letter(0), letter(1), letter(2)) {
        (b'\'', b's' | b't' | b'm' | b'd', _) => 2,
        (b'\'', b'r' | b'v', b'e') | (b'\'', b'l', b'l') => 3,
        (b'\'', 0xC5, 0xBF) if any_case => 3,
        _ => 0,
    }
}
