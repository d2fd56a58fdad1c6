//! How the entries of a ledger become one quantity: signs, shares, parts, comparisons.

use crate::simulator::language::same_number;

use super::{
    fact::{Fact, Rate},
    ledger::{LedgerEntry, ProblemLedger},
    noun::CountedUnit,
    solution::{Arithmetic, Quantity},
    verbs::Deed,
};

type FactLine = (Fact, Option<LedgerEntry>);

impl ProblemLedger<'_> {
    /// Adds and subtracts the entries in order; shares and factors apply to what has come together so far.
    pub(super) fn fold(&self, lines: &[FactLine], unit: &CountedUnit) -> Option<Quantity> {
        let lines = self.signed(lines, unit);
        let what = if self.asked.says(&["left", "remain", "remaining", "still"]) {
            format!("{} left", unit.words())
        } else {
            unit.words()
        };
        let mut total: Option<Quantity> = None;
        for (fact, entry) in lines {
            if let Some(entry) = entry {
                let (operation, start) = if entry.sign < 0.0 {
                    (Arithmetic::Subtract, None)
                } else {
                    (Arithmetic::Add, Some(entry.quantity.clone()))
                };
                total = match total {
                    Some(total) => Some(Quantity::join(operation, total, entry.quantity, &what)?),
                    None => start,
                };
                continue;
            }
            total = match (total, fact) {
                (Some(total), Fact::Scale(factor)) => Some(times(total, *factor, &what)?),
                (Some(total), Fact::Change { share, percent }) => Some(self.change(total, *share, *percent, &what)?),
                (Some(total), Fact::Part { value, share: Some(percent), label, .. }) if label.is_empty() => {
                    Some(part_of(&total, *value, *percent, &what)?)
                }
                (Some(total), Fact::Part { value, share, label, .. }) if !self.names(label) => {
                    let part = match share {
                        Some(percent) => part_of(&total, *value, *percent, &what)?,
                        None => Quantity::Given(*value),
                    };
                    Some(Quantity::join(Arithmetic::Subtract, total, part, &what)?)
                }
                (Some(total), Fact::Divide(by)) => {
                    Some(Quantity::join(Arithmetic::Divide, total, Quantity::Given(*by), &what)?)
                }
                (total, _) => total,
            };
        }
        total
    }

    /// Gives the entries their signs: what is left of work, what is needed, what was only taken.
    fn signed<'a>(&self, lines: &'a [FactLine], unit: &CountedUnit) -> Vec<(&'a Fact, Option<LedgerEntry>)> {
        let left =
            self.asked.says(&["left", "remain", "remaining", "still", "more", "need"]) && !self.asked.says(&["than"]);
        let mut signed: Vec<(&Fact, Option<LedgerEntry>)> =
            lines.iter().map(|(fact, entry)| (fact, entry.clone())).collect();
        let entries = |lines: &[(&Fact, Option<LedgerEntry>)]| lines.iter().filter(|(_, e)| e.is_some()).count();
        let needs = signed.iter().any(|(_, e)| e.as_ref().is_some_and(|e| e.deed == Deed::Need));
        let spending =
            unit.is_money() && self.asked.says(&["spend", "spent", "pay", "cost", "price", "bill", "owe"]) && !left;
        let only_buys = spending && signed.iter().any(|(_, e)| e.as_ref().is_some_and(|e| e.sign < 0.0));
        let mut first = true;
        for (_, slot) in &mut signed {
            let Some(entry) = slot else { continue };
            if needs {
                entry.sign = if entry.deed == Deed::Need { 1.0 } else { -entry.sign };
            } else if left && entry.deed == Deed::Work && !first && entry.sign > 0.0 {
                entry.sign = -1.0;
            } else if only_buys && (entry.sign > 0.0 || entry.deed == Deed::Pay) {
                *slot = None;
                continue;
            }
            first = false;
        }
        let all_taken = signed.iter().filter_map(|(_, e)| e.as_ref()).all(|e| e.sign < 0.0);
        if all_taken {
            for entry in signed.iter_mut().filter_map(|(_, e)| e.as_mut()) {
                entry.sign = 1.0;
            }
        }
        let starts_negative = signed.iter().find_map(|(_, e)| e.as_ref()).is_some_and(|e| e.sign < 0.0);
        if starts_negative && entries(&signed) > 1 {
            signed.sort_by_key(|(_, e)| e.as_ref().is_some_and(|e| e.sign < 0.0));
        }
        signed
    }

    /// Leaves out what belongs to others, where the question names one of several owners.
    pub(super) fn filtered(&self, lines: Vec<FactLine>) -> Vec<FactLine> {
        let all = ["together", "altogether", "total", "all", "both", "combined", "left", "change", "profit"];
        if self.asked.says(&all) {
            return lines;
        }
        let entries: Vec<&LedgerEntry> = lines.iter().filter_map(|(_, e)| e.as_ref()).collect();
        let owners: Vec<&String> =
            entries.iter().flat_map(|e| &e.tags).filter(|tag| self.asked.words.contains(tag)).collect();
        let comparing = lines.iter().any(|(fact, _)| matches!(fact, Fact::Relative(_)));
        let states = entries.iter().filter(|e| e.deed == Deed::Have).count();
        let mixed = entries.iter().any(|e| !e.tags.iter().any(|tag| owners.contains(&tag)));
        let Some(last) = owners.last().copied().cloned() else { return lines };
        if !comparing && (!mixed || states < 2) {
            return lines;
        }
        let best = |e: &LedgerEntry| e.tags.contains(&last);
        lines.into_iter().map(|(fact, entry)| (fact, entry.filter(best))).collect()
    }

    /// `25 percent are boys. How many are girls?`, where the question names a part or its rest.
    pub(super) fn named_part(&self, unit: &CountedUnit) -> Option<Quantity> {
        let words = unit.words();
        let mut found = None;
        for (at, fact) in self.facts.iter().enumerate() {
            let Fact::Part { value, share, label, .. } = fact else { continue };
            let same = self.names(label) && !self.asked.says(&["not", "other", "rest", "remaining", "don't", "left"]);
            if !same {
                continue;
            }
            let whole =
                ProblemLedger { asked: self.asked, facts: self.facts.get(..at)?.to_vec(), rates: self.rates.clone() };
            let total_unit = whole.amounts().find_map(|a| a.unit.clone()).unwrap_or_else(|| unit.clone());
            let total = whole.fold(&whole.entries(&total_unit, true), &total_unit);
            found = match share {
                Some(percent) => part_of(&total?, *value, *percent, &words),
                None => Some(Quantity::Given(*value)),
            };
        }
        found
    }

    /// Whether the question speaks of this part.
    fn names(&self, label: &[String]) -> bool {
        label
            .iter()
            .any(|word| self.asked.words.contains(word) || self.asked.unit.as_ref().is_some_and(|u| u.head == *word))
    }

    /// `How many more … than …`: the larger less the smaller of two groups.
    pub(super) fn difference(&self, unit: &CountedUnit) -> Option<Quantity> {
        let than = self.asked.words.iter().position(|word| word == "than")?;
        let (before, after) = self.asked.words.split_at_checked(than)?;
        let lines: Vec<FactLine> = self.entries(unit, true);
        let lines = if lines.iter().filter(|(_, e)| e.is_some()).count() < 2 { self.everything() } else { lines };
        let group = |words: &[String]| -> Vec<FactLine> {
            let ours = |e: &LedgerEntry| {
                let counted = e.unit.iter().flat_map(|u| std::iter::once(&u.head).chain(&u.mods));
                e.tags.iter().chain(counted).any(|tag| words.contains(tag))
            };
            lines.iter().map(|(fact, entry)| (fact.clone(), entry.clone().filter(ours))).collect()
        };
        let own_words: Vec<String> =
            before.iter().filter(|w| !after.contains(w) && **w != unit.head).cloned().collect();
        let their_words: Vec<String> = after.iter().filter(|w| !before.contains(w)).cloned().collect();
        let exclusive = |words: &[String]| self.fold(&group(words), unit);
        let entries: Vec<Quantity> = lines.iter().filter_map(|(_, e)| e.as_ref().map(|e| e.quantity.clone())).collect();
        let pair = match (exclusive(&own_words), exclusive(&their_words)) {
            (Some(a), Some(b)) if a != b => (a, b),
            _ => match entries.as_slice() {
                [.., a, b] => (a.clone(), b.clone()),
                _ => return None,
            },
        };
        let (larger, smaller) = if pair.0.value() >= pair.1.value() { pair } else { (pair.1, pair.0) };
        Quantity::join(Arithmetic::Subtract, larger, smaller, "difference")
    }

    fn everything(&self) -> Vec<FactLine> {
        let entry = |fact: &Fact| match fact {
            Fact::Amount(a) => Some(LedgerEntry {
                quantity: Quantity::Given(a.value),
                sign: 1.0,
                deed: a.deed,
                tags: a.tags.clone(),
                unit: a.unit.clone(),
            }),
            _ => None,
        };
        self.facts.iter().map(|fact| (fact.clone(), entry(fact))).collect()
    }

    /// `5 pens cost 20 dollars. How much does each pen cost?`
    pub(super) fn asked_rate(&self, unit: &CountedUnit) -> Option<Quantity> {
        let each = self.asked.each.as_ref()?;
        let fits = |rate: &&Rate| {
            !same_number(rate.per_count, 1.0) && rate.per.fits(each) && rate.unit.as_ref().is_some_and(|u| u.fits(unit))
        };
        let rate = self.rates.iter().find(fits)?;
        Quantity::join(Arithmetic::Divide, Quantity::Given(rate.value), Quantity::Given(rate.per_count), &unit.words())
    }

    fn change(&self, total: Quantity, share: f64, percent: bool, what: &str) -> Option<Quantity> {
        let part = part_of(&total, share.abs(), percent, what)?;
        let only = ["tip", "discount", "tax", "interest", "rebate"];
        if self.asked.says(&only) && !self.asked.says(&["after", "including", "total", "with"]) {
            return Some(part);
        }
        let half_taken = !percent && same_number(share, -0.5);
        if half_taken {
            return Some(part);
        }
        Quantity::join(if share < 0.0 { Arithmetic::Subtract } else { Arithmetic::Add }, total, part, what)
    }
}

fn times(total: Quantity, factor: f64, what: &str) -> Option<Quantity> {
    if factor >= 1.0 {
        return Quantity::join(Arithmetic::Multiply, total, Quantity::Given(factor), what);
    }
    part_of(&total, factor, false, what)
}

/// A share of a quantity, computed as a person would: halves and thirds by division, percentages over 100.
fn part_of(total: &Quantity, share: f64, percent: bool, what: &str) -> Option<Quantity> {
    let given = Quantity::Given;
    let part = format!("part of the {what}");
    if percent {
        let hundred = (share * 1_000_000.0).round() / 10_000.0;
        let times = Quantity::join(Arithmetic::Multiply, total.clone(), given(hundred), &part)?;
        return Quantity::join(Arithmetic::Divide, times, given(100.0), &part);
    }
    for below in [2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0] {
        let above: f64 = share * below;
        if (above - above.round()).abs() < 1e-9 {
            let times = Quantity::join(Arithmetic::Multiply, total.clone(), given(above.round()), &part)?;
            return Quantity::join(Arithmetic::Divide, times, given(below), &part);
        }
    }
    Quantity::join(Arithmetic::Multiply, total.clone(), given(share), &part)
}
