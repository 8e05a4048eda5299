//! Floats as text: the digits NumPy chooses for them, with points or exponents aligned.

use std::ops::{Div, Neg};

use inlay_cpu::rounding::{bf16_from_f64, f16_from_f64};

use crate::{bf16, f16};

/// At most so many digits follow the point.
const PRECISION: usize = 8;
/// No float needs more digits to be told from its neighbours.
const MOST_DIGITS: usize = 17;

/// A type of floats, each of which is also an `f64`.
pub(super) trait Float:
    Copy + PartialOrd + Div<Output = Self> + Neg<Output = Self> + Into<f64>
{
    /// How many decimal digits always survive the type.
    const DIGITS: u32;

    /// The nearest float.
    fn parse(text: &str) -> Option<Self>;

    /// A number of digits that is not more than [`shortest`] finds; the closer the faster.
    fn at_least_digits(self) -> usize;

    fn is_finite(self) -> bool {
        self.into().is_finite()
    }
}

macro_rules! native {
    ($($type:ty),*) => {$(
        impl Float for $type {
            const DIGITS: u32 = <$type>::DIGITS;

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn at_least_digits(self) -> usize {
                Decimal::new(&format!("{self:e}")).digits.len()
            }
        }
    )*};
}
native!(f32, f64);

macro_rules! half {
    ($($type:ty, $round:path;)*) => {$(
        impl Float for $type {
            const DIGITS: u32 = <$type>::DIGITS;

            // The type's own parser rounds twice.
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok().map($round)
            }

            fn at_least_digits(self) -> usize {
                1
            }
        }
    )*};
}
half!(f16, f16_from_f64; bf16, bf16_from_f64;);

/// The magnitude of a float as digits, the first of which counts ones times 10 to `exponent`.
struct Decimal {
    digits: String,
    exponent: i32,
}

impl Decimal {
    /// From what `{:e}` writes.
    fn new(text: &str) -> Self {
        let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits = digits.chars().filter(char::is_ascii_digit).collect();
        Decimal { digits, exponent: exponent.parse().unwrap_or(0) }
    }

    /// Without zeros at the end.
    fn trim(mut self) -> Self {
        self.digits.truncate(self.digits.trim_end_matches('0').len().max(1));
        self
    }

    /// The next larger one of as many digits.
    fn next(&self) -> Self {
        let len = self.digits.len();
        let mut digits = self.digits.parse::<u64>().map_or(String::new(), |n| (n + 1).to_string());
        let carry = digits.len() > len;
        digits.truncate(len);
        Decimal { digits, exponent: self.exponent + i32::from(carry) }
    }

    fn is<T: Float>(&self, magnitude: T) -> bool {
        let (first, rest) = self.digits.split_at(1.min(self.digits.len()));
        T::parse(&format!("{first}.{rest}e{}", self.exponent)) == Some(magnitude)
    }

    /// The digits before and after the point when no exponent is written.
    fn split(&self) -> (String, String) {
        match usize::try_from(self.exponent) {
            Ok(exponent) => {
                let whole: String = self.digits.chars().take(exponent + 1).collect();
                let fraction = self.digits.chars().skip(exponent + 1).collect();
                (format!("{whole:0<width$}", width = exponent + 1), fraction)
            }
            Err(_) => {
                let zeros = self.exponent.unsigned_abs() as usize - 1;
                ("0".into(), format!("{:0<zeros$}{}", "", self.digits))
            }
        }
    }
}

/// The magnitude in so many digits, 1 at least, rounded to the nearest and ties to even.
///
/// There is an exception. Below a power of two floats lie closer than above it, so that of the
/// decimals around it the nearer may be another float while the farther is this one; then it is
/// the farther, as in NumPy.
fn rounded<T: Float>(magnitude: T, digits: usize) -> Decimal {
    let nearest = Decimal::new(&format!("{:.*e}", digits.saturating_sub(1), magnitude.into()));
    if digits <= MOST_DIGITS && !nearest.is(magnitude) {
        let next = nearest.next();
        if next.is(magnitude) {
            return next;
        }
    }
    nearest
}

/// The magnitude in the fewest digits that tell it from the other floats of its type.
fn shortest<T: Float>(magnitude: T) -> Decimal {
    // Rust's own shortest digits are as few, but among them it breaks ties upwards.
    let mut digits = magnitude.at_least_digits();
    loop {
        let decimal = rounded(magnitude, digits);
        if digits >= MOST_DIGITS || decimal.is(magnitude) {
            return decimal;
        }
        digits += 1;
    }
}

/// The shortest decimal, or if more than `PRECISION` of its digits follow the point, one rounded to
/// as many. Written with an exponent, all digits but the first follow the point.
fn short<T: Float>(magnitude: T, exponent: bool) -> Decimal {
    let decimal = shortest(magnitude);
    let whole = if exponent { 1 } else { decimal.exponent.saturating_add(1) };
    let most = usize::try_from(whole.saturating_add(PRECISION as i32)).unwrap_or(0).max(1);
    if decimal.digits.len() > most { rounded(magnitude, most).trim() } else { decimal }
}

/// Whether NumPy writes these floats with exponents: it looks at the largest, the smallest and
/// their ratio, and reckons in the type of the floats.
fn needs_exponent<T: Float>(values: &[T]) -> bool {
    let magnitudes = values.iter().filter(|value| value.is_finite()).map(|&value| magnitude(value));
    let mut ends: Option<(T, T)> = None;
    for value in magnitudes.filter(|&value| value.into() != 0.0) {
        let (low, high) = ends.unwrap_or((value, value));
        ends =
            Some((if value < low { value } else { low }, if value > high { value } else { high }));
    }
    let Some((low, high)) = ends else { return false };
    let large = 10f64.powi(T::DIGITS.min(8) as i32);
    high.into() >= large
        || T::parse("0.0001").is_some_and(|small| low < small)
        || (high / low).into() > 1000.0
}

fn magnitude<T: Float>(value: T) -> T {
    if value.into().is_sign_negative() { -value } else { value }
}

/// The floats as text, of a common width. With `plus`, those without a minus have a plus.
pub(super) fn words<T: Float>(values: &[T], plus: bool) -> Vec<String> {
    let exponent = needs_exponent(values);
    let short: Vec<Option<Decimal>> = values
        .iter()
        .map(|&value| value.is_finite().then(|| short(magnitude(value), exponent)))
        .collect();
    let texts = if exponent { scientific(values, &short) } else { positional(&short) };
    let words = values.iter().zip(texts).map(|(&value, text)| {
        let value: f64 = value.into();
        // A NaN's own sign says nothing.
        let sign = if value.is_sign_negative() && !value.is_nan() {
            "-"
        } else if plus {
            "+"
        } else {
            ""
        };
        let special = if value.is_nan() { "nan" } else { "inf" };
        format!("{sign}{}", text.as_deref().unwrap_or(special))
    });
    let words: Vec<String> = words.collect();
    // All numbers are equally long to the right of the point, so this aligns the points.
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

/// Magnitudes without exponents, padded on the right to the longest fraction.
fn positional(decimals: &[Option<Decimal>]) -> Vec<Option<String>> {
    let split: Vec<_> =
        decimals.iter().map(|decimal| decimal.as_ref().map(Decimal::split)).collect();
    let width = split.iter().flatten().map(|(_, fraction)| fraction.len()).max().unwrap_or(0);
    let text = |(whole, fraction)| format!("{whole}.{fraction:<width$}");
    split.into_iter().map(|parts| parts.map(text)).collect()
}

/// Magnitudes with exponents, all with as many digits as the one that has the most.
fn scientific<T: Float>(values: &[T], decimals: &[Option<Decimal>]) -> Vec<Option<String>> {
    let known = || decimals.iter().flatten();
    let digits = known().map(|decimal| decimal.digits.len()).max().unwrap_or(1);
    let exponents = known().map(|decimal| decimal.exponent.unsigned_abs().to_string().len());
    let width = exponents.max().unwrap_or(0).max(2);
    let text = |&value: &T| {
        // Digits past the shortest ones are not zeros, but those of the exact value.
        let Decimal { digits, exponent } = rounded(magnitude(value), digits);
        let (first, rest) = digits.split_at(1.min(digits.len()));
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{first}.{rest}e{sign}{:0>width$}", exponent.unsigned_abs())
    };
    values.iter().map(|value| value.is_finite().then(|| text(value))).collect()
}
