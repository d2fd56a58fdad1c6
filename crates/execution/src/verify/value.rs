//! Values of plain arithmetic: numbers, `+ - * / ^`, brackets, `sqrt`, `pi`, implied products.

/// Deepest nesting that is evaluated.
const DEPTH: usize = 32;
/// The longest text that is evaluated, in bytes.
const LONGEST: usize = 1000;

/// The value of an expression; `None` where it is not one, or not finite.
pub(super) fn evaluate(text: &str) -> Option<f64> {
    if text.len() > LONGEST {
        return None;
    }
    let mut reader = ValueReader { rest: text.trim(), depth: 0 };
    let value = mixed(reader.rest).or_else(|| reader.sum().filter(|_| reader.rest.trim().is_empty()))?;
    value.is_finite().then_some(value)
}

/// `1 1/2`.
fn mixed(text: &str) -> Option<f64> {
    let (whole, part) = text.split_once(char::is_whitespace)?;
    let (above, below) = part.trim().split_once('/')?;
    let digits = |text: &str| -> Option<f64> {
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| text.parse().ok()).flatten()
    };
    let (sign, whole) = whole.strip_prefix('-').map_or((1.0, whole), |whole| (-1.0, whole));
    let below = digits(below).filter(|below| *below != 0.0)?;
    Some(sign * (digits(whole)? + digits(above)? / below))
}

struct ValueReader<'a> {
    rest: &'a str,
    depth: usize,
}

impl ValueReader<'_> {
    fn sum(&mut self) -> Option<f64> {
        let mut value = self.product()?;
        loop {
            if self.take("+") {
                value += self.product()?;
            } else if self.take("-") {
                value -= self.product()?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut value = self.signed()?;
        loop {
            if self.take("*") {
                value *= self.signed()?;
            } else if self.take("/") {
                value /= self.signed()?;
            } else if self.begins_factor() {
                value *= self.power()?;
            } else {
                return Some(value);
            }
        }
    }

    /// Whether a factor follows without a sign between: `2pi`, `3(4)`, `2sqrt(3)`. Two numbers in a row are none.
    fn begins_factor(&self) -> bool {
        let rest = self.rest.trim_start();
        rest.starts_with('(') || rest.starts_with("pi") || rest.starts_with("sqrt")
    }

    fn signed(&mut self) -> Option<f64> {
        let mut sign = 1.0;
        loop {
            if self.take("-") {
                sign = -sign;
            } else if !self.take("+") {
                return self.power().map(|value| sign * value);
            }
        }
    }

    fn power(&mut self) -> Option<f64> {
        let base = self.atom()?;
        if !self.take("^") {
            return Some(base);
        }
        self.deeper(Self::signed).map(|exponent| base.powf(exponent))
    }

    fn atom(&mut self) -> Option<f64> {
        if self.take("pi") {
            return Some(std::f64::consts::PI);
        }
        if self.take("sqrt") {
            return self.deeper(Self::atom).map(f64::sqrt);
        }
        if self.take("(") {
            let value = self.deeper(Self::sum)?;
            return self.take(")").then_some(value);
        }
        self.number()
    }

    fn number(&mut self) -> Option<f64> {
        let rest = self.rest.trim_start();
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let value: f64 = number.parse().ok()?;
        self.rest = after;
        // `2e3`, but not the `e` of `2 eggs`.
        let exponent = after.strip_prefix(['e', 'E']).unwrap_or_default();
        let signed = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let length = signed.find(|c: char| !c.is_ascii_digit()).unwrap_or(signed.len());
        if length == 0 {
            return Some(value);
        }
        let all = exponent.len() - signed.len() + length;
        let (power, after) = exponent.split_at(all);
        self.rest = after;
        Some(value * 10f64.powi(power.parse().ok()?))
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Option<f64>) -> Option<f64> {
        if self.depth >= DEPTH {
            return None;
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn take(&mut self, sign: &str) -> bool {
        let taken = self.rest.trim_start().strip_prefix(sign);
        if let Some(rest) = taken {
            self.rest = rest;
        }
        taken.is_some()
    }
}

/// Whether two values are the same within a relative and an absolute tolerance.
pub(super) fn close(expected: f64, got: f64, relative: f64, absolute: f64) -> bool {
    let apart = (expected - got).abs();
    apart <= absolute || apart <= relative * expected.abs().max(got.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for (text, expected) in [
            ("1 1/2", Some(1.5)),
            ("-1 1/2", Some(-1.5)),
            ("((1)/(2))", Some(0.5)),
            ("2^(3)", Some(8.0)),
            ("-2^2", Some(-4.0)),
            ("2sqrt(9)", Some(6.0)),
            ("2(3+4)", Some(14.0)),
            ("2e3", Some(2000.0)),
            ("2.5*10^(3)", Some(2500.0)),
            ("pi/2", Some(std::f64::consts::FRAC_PI_2)),
            ("1/0", None),
            ("2 3", None),
            ("x+1", None),
            ("1 apple", None),
            ("", None),
            ("1e400", None),
        ] {
            let value = evaluate(text);
            let same = match (value, expected) {
                (Some(a), Some(b)) => close(b, a, 1e-12, 0.0),
                (a, b) => a == b,
            };
            assert!(same, "{text}: {value:?}");
        }
    }

    #[test]
    fn deep_nesting_ends() {
        assert_eq!(evaluate(&"(".repeat(900)), None);
        assert_eq!(evaluate(&"2^".repeat(400)), None);
        assert_eq!(evaluate(&"9".repeat(100_000)), None);
    }
}
