//! The criteria that rank pairs, compared exactly.
//!
//! Scores are compared as fractions of integers, so that ties are ties on every machine. Nearly all
//! comparisons are settled by doubles, whose error is known; only if two are too close are the
//! fractions compared, in 192 bits.

use std::cmp::Ordering;

/// The criterion that ranks pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// freq(ab) / (freq(a) · freq(b)), the score of WordPiece.
    Pmi,
    /// The change of the corpus's unigram log-likelihood when the pair becomes one token.
    Likelihood,
    /// freq(ab), the score of BPE.
    Frequency,
}

/// The counts that the score of a pair depends on.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// The count of the pair.
    pub pair: u64,
    /// The number of merges of the pair: less than its count if it overlaps itself, as in `a a a`.
    pub merges: u64,
    /// The count of the left token.
    pub left: u64,
    /// The count of the right token.
    pub right: u64,
    /// The count of the merged token before the merge, mostly 0.
    pub merged: u64,
    /// The number of tokens in the corpus.
    pub total: u64,
    /// True if the left and the right token are the same.
    pub same: bool,
}

/// A score, as a fraction of integers. A gain of the likelihood is a double; its numerator is an
/// integer with the same order.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    numerator: u64,
    denominator: u128,
    approx: f64,
}

impl Score {
    fn ratio(numerator: u64, denominator: u128) -> Self {
        Score { numerator, denominator, approx: numerator as f64 / denominator as f64 }
    }

    fn gain(gain: f64) -> Self {
        Score { numerator: ordered_bits(gain), denominator: 1, approx: gain }
    }

    /// The score of a pair.
    pub fn of(criterion: Criterion, counts: &Counts) -> Self {
        match criterion {
            Criterion::Pmi => Score::ratio(counts.pair, counts.left as u128 * counts.right as u128),
            Criterion::Frequency => Score::ratio(counts.pair, 1),
            Criterion::Likelihood => Score::gain(gain(counts)),
        }
    }

    /// Return a score that is not below the score of the pair for any larger `left` and `right`, or any
    /// smaller `total`.
    pub(crate) fn bound(criterion: Criterion, counts: &Counts) -> Self {
        if criterion != Criterion::Likelihood {
            return Score::of(criterion, counts);
        }
        Score::gain(gain(counts) + slack(counts.total))
    }

    /// The score as a double, correctly rounded. `criterion`: that which the score is of.
    pub fn value(&self, criterion: Criterion) -> f64 {
        match criterion {
            Criterion::Likelihood => self.approx,
            _ => divide(self.numerator, self.denominator),
        }
    }

    /// The score as a double, with a relative error of 2^-51 at most.
    pub(crate) fn approx(&self) -> f64 {
        self.approx
    }

    /// The count of a pair whose score is its frequency.
    pub fn count(&self) -> u64 {
        self.numerator
    }

    /// Return true if the score of a pair by pmi is below 1 / n.
    pub(crate) fn is_below_inverse(&self, n: u64) -> bool {
        n != u64::MAX && (self.numerator as u128 * n as u128) < self.denominator
    }

    /// Compares two scores of the same criterion, exactly.
    #[inline]
    pub(crate) fn compare(&self, other: &Score) -> Ordering {
        compare_approx(self.approx, other.approx).unwrap_or_else(|| {
            let left = wide_product(self.numerator, other.denominator);
            left.cmp(&wide_product(other.numerator, self.denominator))
        })
    }
}

/// The order of two scores by their doubles, each with a relative error of 2^-51 at most. None: they
/// are too close to tell.
#[inline]
pub(crate) fn compare_approx(a: f64, b: f64) -> Option<Ordering> {
    let margin = 1e-12 * a.abs();
    if a > b + margin {
        Some(Ordering::Greater)
    } else if a < b - margin {
        Some(Ordering::Less)
    } else {
        None
    }
}

/// a · b in 192 bits: the high 64 and the low 128.
fn wide_product(a: u64, b: u128) -> (u64, u128) {
    let low = a as u128 * (b as u64 as u128);
    let high = a as u128 * (b >> 64) + (low >> 64);
    ((high >> 64) as u64, high << 64 | low as u64 as u128)
}

/// n / d, rounded to nearest, ties to even. d < 2^126.
fn divide(n: u64, d: u128) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let (mut rest, mut d, mut exponent) = (n as u128, d, 0i32);
    while rest < d {
        rest <<= 1;
        exponent -= 1;
    }
    while d <= rest >> 1 {
        d <<= 1;
        exponent += 1;
    }
    // Now d <= rest < 2d. The quotient gets 53 bits, and one more to round by; the remainder in `rest`
    // says whether more bits would follow.
    let mut quotient = 0u64;
    for _ in 0..54 {
        let bit = rest >= d;
        rest = (if bit { rest - d } else { rest }) << 1;
        quotient = quotient << 1 | bit as u64;
    }
    let tie_to_even = rest == 0 && quotient & 2 == 0;
    let rounded = (quotient >> 1) + (quotient & 1) * (!tie_to_even as u64);
    rounded as f64 * 2f64.powi(exponent - 52)
}

/// An integer that has the same order among others as the double that it is made of.
fn ordered_bits(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The gain in unigram log-likelihood when the pair becomes one token: the change of
/// Σ h(count) - h(total), the sum being over all tokens. It is evaluated in one fixed order, of
/// operations that IEEE 754 defines to the bit, so that every machine gets the same number.
fn gain(counts: &Counts) -> f64 {
    let m = counts.merges;
    let made = h(counts.merged + m) - h(counts.merged);
    let total = h(counts.total) - h(counts.total - m);
    let lost = if counts.same {
        h(counts.left) - h(counts.left - 2 * m)
    } else {
        (h(counts.left) - h(counts.left - m)) + (h(counts.right) - h(counts.right - m))
    };
    made - lost + total
}

/// The most that rounding may add to `gain`: a few units in the last place of its largest term.
fn slack(total: u64) -> f64 {
    1e-14 * (1.0 + h(total))
}

/// An upper limit of the gain of every pair that makes `most` merges or fewer. `total`: the number of
/// tokens in the corpus.
///
/// With f(x) = h(x) - h(x - m): the term of each of the two tokens falls by at least f(m) = h(m),
/// since they occur m times or more. The term of the new token grows by f(total) at most, and so
/// does the term of the total. The limit, 2 f(total) - 2 h(m), grows with m up to half the total.
pub fn gain_limit(most: u64, total: u64) -> f64 {
    let m = most.min(total / 2);
    2.0 * (h(total) - h(total - m) - h(m)) + slack(total)
}

/// x · ln x
fn h(x: u64) -> f64 {
    if x == 0 { 0.0 } else { x as f64 * natural_log(x as f64) }
}

/// ln x by additions, multiplications and divisions alone: x = m · 2^e with m near 1, and
/// ln m = 2 artanh((m - 1) / (m + 1)) by its series. Platforms' own logarithms differ in the last bit.
pub(crate) fn natural_log(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut e = ((bits >> 52) & 0x7FF) as i64 - 1022;
    let mut m = f64::from_bits(bits & !(0x7FF << 52) | 1022 << 52); // 0.5 <= m < 1
    if m < std::f64::consts::FRAC_1_SQRT_2 {
        m *= 2.0;
        e -= 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let series = (0..12).rev().fold(1.0 / 25.0, |r, k| r * z + 1.0 / (2 * k + 1) as f64);
    e as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_is_accurate() {
        for x in (1..2000u64).chain((0..63).map(|k| (1 << k) + k)) {
            let exact = (x as f64).ln();
            assert!((natural_log(x as f64) - exact).abs() <= 4e-16 * exact.max(1.0), "{x}");
        }
    }

    #[test]
    fn division_is_correctly_rounded() {
        assert_eq!(divide(95, 100 * 5000), 0.00019);
        assert_eq!(divide(1, 3), 1.0 / 3.0);
        assert_eq!(divide(u64::MAX, 1), u64::MAX as f64);
        for n in 1..200u64 {
            for d in 1..200u64 {
                assert_eq!(divide(n, d as u128), n as f64 / d as f64, "{n}/{d}");
            }
        }
    }

    #[test]
    fn comparison_is_exact() {
        let big = u64::MAX / 2;
        let a = Score::ratio(big, big as u128 * big as u128);
        let b = Score::ratio(big - 1, (big - 1) as u128 * (big - 1) as u128);
        assert_eq!(a.compare(&b), Ordering::Less);
        assert_eq!(a.compare(&a), Ordering::Equal);
        assert_eq!(Score::ratio(2, 6).compare(&Score::ratio(1, 3)), Ordering::Equal);
    }

    #[test]
    fn no_gain_is_above_the_limit() {
        for total in [4u64, 7, 50] {
            for (left, right) in (1..total).flat_map(|l| (1..=total - l).map(move |r| (l, r))) {
                for m in 1..=left.min(right) {
                    for merged in 0..=total - left - right {
                        let counts =
                            Counts { pair: m, merges: m, left, right, merged, total, same: false };
                        assert!(gain(&counts) <= gain_limit(m, total), "{counts:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn ordered_bits_keep_order() {
        let numbers = [f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 1e-300, 1.0, 1e300];
        for pair in numbers.windows(2) {
            assert!(ordered_bits(pair[0]) < ordered_bits(pair[1]));
        }
    }
}
