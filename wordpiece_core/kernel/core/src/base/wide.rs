//! Positive numbers of any size. Probabilities of long words, and large powers of them, are smaller than
//! a double can be.

use std::ops::{Add, Mul};

const BLOCK: i64 = 256;
const LARGE: f64 = f64::from_bits((1023 + BLOCK as u64) << 52);
const SMALL: f64 = f64::from_bits((1023 - BLOCK as u64) << 52);

/// A number: value · 2^(256 · blocks), where the value is 0 or from 2^-256 to 2^256. It has the
/// precision of a double, and sums and products are rounded like sums and products of doubles.
#[derive(Clone, Copy, Debug)]
pub struct Wide {
    value: f64,
    blocks: i64,
}

impl Wide {
    /// 0.
    pub const ZERO: Wide = Wide { value: 0.0, blocks: i64::MIN / 2 };
    /// 1.
    pub const ONE: Wide = Wide { value: 1.0, blocks: 0 };

    /// Convert a double, which must be finite and not negative.
    pub fn of(value: f64) -> Self {
        if value == 0.0 { Wide::ZERO } else { Wide { value, blocks: 0 }.normal() }
    }

    /// The natural logarithm, the same on every machine; None of 0.
    pub fn ln(self) -> Option<f64> {
        let blocks = self.blocks as f64 * (BLOCK as f64 * std::f64::consts::LN_2);
        (self.value > 0.0).then(|| libm::log(self.value) + blocks)
    }

    /// 1 / x, if x is not 0.
    pub(crate) fn inverse(self) -> Self {
        Wide { value: 1.0 / self.value, blocks: -self.blocks }.normal()
    }

    /// Return the value divided by the power of two of `other`.
    pub(crate) fn relative_to(self, other: Wide) -> f64 {
        self.scaled(self.blocks - other.blocks)
    }

    /// As a double; what is too small for it becomes 0. It must be below 2^256.
    pub(crate) fn to_f64(self) -> f64 {
        self.scaled(self.blocks)
    }

    /// value · 2^(256 · blocks), for `blocks` up to 0.
    #[inline]
    fn scaled(self, blocks: i64) -> f64 {
        match blocks {
            ..-4 => 0.0,
            blocks => (blocks..0).fold(self.value, |value, _| value * SMALL),
        }
    }

    #[inline]
    fn normal(mut self) -> Self {
        while self.value >= LARGE {
            self.value *= SMALL;
            self.blocks += 1;
        }
        while self.value < SMALL && self.value > 0.0 {
            self.value *= LARGE;
            self.blocks -= 1;
        }
        self
    }
}

impl Mul for Wide {
    type Output = Wide;

    #[inline]
    fn mul(self, other: Wide) -> Wide {
        let value = self.value * other.value;
        if value == 0.0 {
            return Wide::ZERO;
        }
        Wide { value, blocks: self.blocks + other.blocks }.normal()
    }
}

impl Add for Wide {
    type Output = Wide;

    #[inline]
    fn add(self, other: Wide) -> Wide {
        let (large, small) =
            if self.blocks >= other.blocks { (self, other) } else { (other, self) };
        let value = large.value + small.relative_to(large);
        Wide { value, blocks: large.blocks }.normal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wordpiece_testing::Random;

    #[test]
    fn numbers_are_those_of_doubles_where_these_are_wide_enough() {
        let mut random = Random::new(9);
        for _ in 0..10_000 {
            let [a, b] = [0; 2].map(|_| {
                let factor = 1.0 + random.below(1 << 30) as f64 / (1u64 << 30) as f64;
                factor * 2f64.powi(random.below(500) as i32 - 400)
            });
            let [x, y] = [a, b].map(Wide::of);
            assert_eq!((x + y).to_f64(), a + b);
            assert_eq!((x * y * y.inverse()).to_f64(), a * b * (1.0 / b));
            assert!((x.ln().unwrap() - a.ln()).abs() <= 1e-13 * a.ln().abs().max(1.0));
        }
        assert_eq!((Wide::ZERO + Wide::ONE).to_f64(), 1.0);
        assert_eq!((Wide::ZERO * Wide::ONE).ln(), None);
    }

    #[test]
    fn numbers_may_be_smaller_than_doubles() {
        let small = (0..10).fold(Wide::ONE, |power, _| power * Wide::of(1e-200));
        assert_eq!(small.to_f64(), 0.0);
        assert_eq!(
            (small * small + small * small).relative_to(small * small),
            2.0 * (small * small).relative_to(small * small)
        );
        let ln = (small * small).ln().unwrap();
        assert!((ln + 4000.0 * std::f64::consts::LN_10).abs() < 1e-6);
        assert!(((small * small.inverse()).to_f64() - 1.0).abs() < 1e-15);
    }
}
