//! From what is stated to what is asked: a ledger of amounts, converted by the rates into what is counted.

use super::{
    fact::{Amount, AskedFact, Fact, Rate, Relative, Stated},
    noun::{self, CountedUnit},
    solution::{Arithmetic, Quantity},
    verbs::{self, Deed},
};

/// The quantity that is asked for, and what it counts.
pub(super) fn answer(stated: &Stated) -> Option<(Quantity, String)> {
    let mut ledger = ProblemLedger::new(stated);
    let unit = ledger.unit()?;
    let quantity = ledger.answer(&unit)?;
    Some((quantity, unit.words()))
}

pub(super) struct ProblemLedger<'a> {
    pub(super) asked: &'a AskedFact,
    pub(super) facts: Vec<Fact>,
    pub(super) rates: Vec<Rate>,
}

/// One entry of the ledger, in what is counted.
#[derive(Debug, Clone)]
pub(super) struct LedgerEntry {
    pub(super) quantity: Quantity,
    pub(super) sign: f64,
    pub(super) deed: Deed,
    pub(super) tags: Vec<String>,
    pub(super) unit: Option<CountedUnit>,
}

impl<'a> ProblemLedger<'a> {
    fn new(stated: &'a Stated) -> Self {
        let mut facts: Vec<Fact> = stated.facts.iter().chain(&stated.asked.facts).cloned().collect();
        settle_paces(&mut facts);
        settle_parts(&mut facts);
        settle_contents(&mut facts);
        let rates =
            facts.iter().filter_map(|f| if let Fact::Rate(rate) = f { Some(rate.clone()) } else { None }).collect();
        Self { asked: &stated.asked, facts, rates }
    }

    pub(super) fn amounts(&self) -> impl Iterator<Item = &Amount> {
        self.facts.iter().filter_map(|f| if let Fact::Amount(amount) = f { Some(amount) } else { None })
    }

    /// What the answer counts: as asked, where anything stated leads there; else the nearest that does.
    fn unit(&mut self) -> Option<CountedUnit> {
        let known: Vec<CountedUnit> = self
            .amounts()
            .filter_map(|a| a.unit.clone())
            .chain(self.rates.iter().filter_map(|r| r.unit.clone()))
            .collect();
        let alike = |heads: &[&str]| known.iter().find(|u| heads.contains(&u.head.as_str())).cloned();
        let asked = self.asked.unit.clone();
        match asked.as_ref().map(|u| u.head.as_str()) {
            Some("km") => alike(&["km", "mile", "meter", "m", "lap", "block"]).or(asked),
            Some("hour")
                if self.asked.unit.as_ref().is_some_and(|u| u.mods.is_empty()) && self.asked.says(&["long"]) =>
            {
                alike(&["hour", "minute", "day", "second", "meter", "cm", "foot"]).or(asked)
            }
            Some("cm") => alike(&["cm", "meter", "inch", "m", "foot"]).or(asked),
            Some(_) => asked,
            None if known.iter().any(CountedUnit::is_money) && self.asked.says(&["total", "much"]) => {
                Some(CountedUnit::plain("money"))
            }
            None => known.into_iter().find(|u| !noun::is_time(&u.head)),
        }
    }

    fn answer(&self, unit: &CountedUnit) -> Option<Quantity> {
        if let Some(part) = self.named_part(unit) {
            return Some(part);
        }
        if self.asked.says(&["than"]) && self.asked.says(&["more", "fewer", "less", "older", "longer", "taller"]) {
            return self.difference(unit);
        }
        if let Some(rate) = self.asked_rate(unit) {
            return Some(rate);
        }
        let total = self.total(unit)?;
        self.divided(total, unit)
    }

    /// All entries in this unit, folded in order.
    fn total(&self, unit: &CountedUnit) -> Option<Quantity> {
        let entries = self.entries(unit, true);
        let direct = entries.iter().any(|(_, e)| e.is_some());
        let entries = if direct { entries } else { self.entries(unit, false) };
        let found = entries.iter().filter_map(|(_, e)| e.as_ref());
        let only_taken = self.asked.says(&["left", "remain", "remaining"]) && found.clone().all(|e| e.sign < 0.0);
        let entries = if found.count() > 0 && !only_taken { entries } else { self.last_resort(unit) };
        self.fold(&self.filtered(entries), unit)
    }

    /// Each fact with its entry in this unit, if it has one.
    pub(super) fn entries(&self, unit: &CountedUnit, forward: bool) -> Vec<(Fact, Option<LedgerEntry>)> {
        let entry = |at: usize| self.entry(at, unit, forward, 0);
        self.facts.iter().enumerate().map(|(at, fact)| (fact.clone(), entry(at))).collect()
    }

    pub(super) fn entry(&self, at: usize, unit: &CountedUnit, forward: bool, depth: u32) -> Option<LedgerEntry> {
        match self.facts.get(at)? {
            Fact::Amount(amount) => {
                let given = Quantity::Given(amount.value);
                let (quantity, deed) =
                    self.convert(given, amount.unit.as_ref(), amount.rate.as_ref(), unit, forward)?;
                let time = amount.unit.as_ref().is_some_and(|own| noun::is_time(&own.head) && !own.fits(unit));
                let deed = if deed == Deed::Lose || time { deed } else { amount.deed };
                let sign = verbs::sign(deed, unit.is_money());
                Some(LedgerEntry {
                    quantity,
                    sign,
                    deed: amount.deed,
                    tags: amount.tags.clone(),
                    unit: amount.unit.clone(),
                })
            }
            Fact::Relative(relative) => self.relative(at, relative, unit, forward, depth),
            _ => None,
        }
    }

    fn relative(
        &self,
        at: usize,
        relative: &Relative,
        unit: &CountedUnit,
        forward: bool,
        depth: u32,
    ) -> Option<LedgerEntry> {
        if depth > 6
            || relative.unit.as_ref().is_some_and(|own| !own.fits(unit) && !self.leads(own, unit) && own.head != "year")
        {
            return None;
        }
        let named = |place: &usize| *place != at && self.is_named(*place, &relative.than);
        let count = self.facts.len();
        let other = (0..count).find(named).filter(|_| !relative.than.is_empty());
        let other =
            other.or_else(|| (0..at).rev().find(|place| self.entry(*place, unit, forward, depth + 1).is_some()));
        let other_unit = match self.facts.get(other?)? {
            Fact::Amount(amount) => amount.unit.clone(),
            Fact::Relative(relative) => relative.unit.clone(),
            _ => None,
        };
        let reach = match (&relative.unit, other_unit) {
            (Some(own), Some(theirs)) if own.fits(unit) && !theirs.fits(unit) => theirs,
            _ => unit.clone(),
        };
        let other = self.entry(other?, &reach, forward, depth + 1)?.quantity;
        let what = unit.words();
        let factor = Quantity::Given(relative.factor.max(1.0 / relative.factor));
        let grows = (relative.factor >= 1.0) != relative.inverse;
        let scaled =
            Quantity::join(if grows { Arithmetic::Multiply } else { Arithmetic::Divide }, other, factor, &what)?;
        let more = (relative.offset >= 0.0) != relative.inverse;
        let offset = Quantity::Given(relative.offset.abs());
        let quantity =
            Quantity::join(if more { Arithmetic::Add } else { Arithmetic::Subtract }, scaled, offset, &what)?;
        let tags = if relative.inverse { relative.than.clone() } else { relative.tags.clone() };
        let sign = verbs::sign(relative.deed, unit.is_money());
        Some(LedgerEntry { quantity, sign, deed: relative.deed, tags, unit: relative.unit.clone() })
    }

    fn is_named(&self, at: usize, than: &[String]) -> bool {
        let (tags, unit) = match self.facts.get(at) {
            Some(Fact::Amount(amount)) => (&amount.tags, &amount.unit),
            Some(Fact::Relative(relative)) => (&relative.tags, &relative.unit),
            _ => return false,
        };
        let head = unit.iter().flat_map(|u| std::iter::once(&u.head).chain(&u.mods));
        tags.iter().chain(head).any(|word| than.contains(word))
    }

    fn leads(&self, from: &CountedUnit, to: &CountedUnit) -> bool {
        self.convert(Quantity::Given(1.0), Some(from), None, to, true).is_some()
    }

    /// Where no amount leads to the unit: prices and the like taken once each, else everything that is counted.
    fn last_resort(&self, unit: &CountedUnit) -> Vec<(Fact, Option<LedgerEntry>)> {
        let per_one = |rate: &Rate| rate.unit.as_ref().is_some_and(|own| own.fits(unit));
        let any_rate = self.rates.iter().any(per_one);
        let counted = |a: &Amount| {
            let measured = a.unit.as_ref().is_some_and(|u| u.is_money() || noun::is_time(&u.head));
            let container =
                a.unit.as_ref().is_some_and(|u| self.rates.iter().any(|r| r.per.fits(u) && r.unit.is_some()));
            !measured && !container
        };
        let filled = |a: &Amount| self.rates.iter().find(|r| a.unit.as_ref().is_some_and(|u| r.per.fits(u)));
        let stated = |a: &Amount| (a.deed, a.tags.clone());
        let entry = |fact: &Fact| {
            let (quantity, (deed, tags), unit) = match fact {
                Fact::Rate(rate) if any_rate && per_one(rate) => {
                    (Quantity::Given(rate.value), (Deed::Have, Vec::new()), rate.unit.clone())
                }
                Fact::Amount(a) if !any_rate && counted(a) => (Quantity::Given(a.value), stated(a), a.unit.clone()),
                Fact::Amount(a) if !any_rate => {
                    let rate = a
                        .rate
                        .as_ref()
                        .or_else(|| filled(a))
                        .filter(|r| r.unit.as_ref().is_some_and(|u| !u.is_money()))?;
                    (apply(rate, Quantity::Given(a.value), true, unit)?, stated(a), rate.unit.clone())
                }
                _ => return None,
            };
            Some(LedgerEntry { quantity, sign: verbs::sign(deed, false), deed, tags, unit })
        };
        self.facts.iter().map(|fact| (fact.clone(), entry(fact))).collect()
    }

    /// `A hen lays 6 eggs per week`, told of 8 hens.
    fn for_each_subject(&self, rate: &Rate, made: Quantity, what: &CountedUnit) -> Quantity {
        let counted = |subject: &CountedUnit| self.amounts().find(|a| a.unit.as_ref().is_some_and(|u| u.fits(subject)));
        let count = rate.subject.as_ref().and_then(counted).map(|amount| Quantity::Given(amount.value));
        count.and_then(|count| Quantity::join(Arithmetic::Multiply, made.clone(), count, &what.words())).unwrap_or(made)
    }

    fn divided(&self, total: Quantity, unit: &CountedUnit) -> Option<Quantity> {
        if self.facts.iter().any(|f| matches!(f, Fact::Divide(_))) {
            return Some(total);
        }
        let average = self.asked.says(&["average", "mean"]);
        if average && self.asked.each.is_none() {
            let count = self.amounts().filter(|a| a.unit.as_ref().is_none_or(|own| own.fits(unit))).count();
            let count = u32::try_from(count).ok().map(f64::from)?;
            return Quantity::join(
                Arithmetic::Divide,
                total,
                Quantity::Given(count),
                &format!("average {}", unit.words()),
            );
        }
        let Some(each) = &self.asked.each else { return Some(total) };
        let person = |u: &CountedUnit| !u.fits(unit) && !u.is_money();
        let fitting = self.amounts().find(|a| a.unit.as_ref().is_some_and(|u| u.fits(each) && person(u)));
        let any = || self.amounts().find(|a| each.head == "each" && a.unit.as_ref().is_some_and(person));
        match fitting.or_else(any) {
            Some(by) => {
                Quantity::join(Arithmetic::Divide, total, Quantity::Given(by.value), &format!("{} each", unit.words()))
            }
            None => Some(total),
        }
    }

    /// Takes a quantity from one unit to another along the rates. `forward` allows only multiplication.
    fn convert(
        &self,
        quantity: Quantity,
        from: Option<&CountedUnit>,
        own: Option<&Rate>,
        to: &CountedUnit,
        forward: bool,
    ) -> Option<(Quantity, Deed)> {
        let Some(from) = from else { return Some((quantity, Deed::Have)) };
        if from.fits(to) {
            return Some((quantity, Deed::Have));
        }
        if let Some(rate) = own {
            let made = self.for_each_subject(rate, apply(rate, quantity.clone(), true, to)?, to);
            let reached = rate.unit.clone().unwrap_or_else(|| to.clone());
            if let Some((found, deed)) = self.walk(made, &reached, to, forward, 0) {
                return Some((found, if rate.deed == Deed::Lose { rate.deed } else { deed }));
            }
        }
        self.walk(quantity, from, to, forward, 0)
    }

    fn walk(
        &self,
        quantity: Quantity,
        from: &CountedUnit,
        to: &CountedUnit,
        forward: bool,
        depth: u32,
    ) -> Option<(Quantity, Deed)> {
        if from.fits(to) {
            return Some((quantity, Deed::Have));
        }
        if depth > 3 {
            return None;
        }
        let fixed = noun::is_time(&from.head).then(fixed_rates).unwrap_or_default();
        for rate in self.rates.iter().chain(&fixed) {
            let reached = rate.unit.clone().unwrap_or_else(|| to.clone());
            let up = rate.per.fits(from);
            if !up && (forward || !rate.unit.as_ref().is_none_or(|unit| unit.fits(from))) {
                continue;
            }
            let Some(made) = apply(rate, quantity.clone(), up, if up { &reached } else { &rate.per }) else { continue };
            let made = if up { self.for_each_subject(rate, made, &reached) } else { made };
            let next = if up { reached } else { rate.per.clone() };
            if let Some((found, deed)) = self.walk(made, &next, to, forward, depth + 1) {
                return Some((found, if rate.deed == Deed::Lose { rate.deed } else { deed }));
            }
        }
        None
    }
}

/// `A box holds 24 bottles` is a rate where boxes are counted elsewhere.
fn settle_contents(facts: &mut [Fact]) {
    let counted: Vec<CountedUnit> =
        facts.iter().filter_map(|f| if let Fact::Amount(amount) = f { amount.unit.clone() } else { None }).collect();
    for fact in facts {
        let Fact::Amount(Amount { value, unit, deed, in_one: Some(per), .. }) = fact else { continue };
        if unit.is_some() && counted.iter().any(|other| other.fits(per)) {
            let (value, unit, deed, per) = (*value, unit.clone(), *deed, per.clone());
            *fact = Fact::Rate(Rate { value, unit, per, per_count: 1.0, deed, subject: None });
        }
    }
}

/// `12 are boys` is a part where a whole was stated before, else an amount of its own.
fn settle_parts(facts: &mut [Fact]) {
    let mut whole = false;
    for fact in facts {
        match fact {
            Fact::Part { value, share: None, unit, label } if !whole => {
                let unit = unit.clone().map(|mut unit| {
                    unit.mods.extend(label.iter().cloned());
                    unit
                });
                *fact = Fact::Amount(Amount {
                    value: *value,
                    unit,
                    deed: Deed::Have,
                    tags: label.clone(),
                    rate: None,
                    in_one: None,
                });
            }
            Fact::Amount(_) | Fact::Relative(_) => whole = true,
            _ => {}
        }
    }
}

fn apply(rate: &Rate, quantity: Quantity, up: bool, what: &CountedUnit) -> Option<Quantity> {
    let (times, by) = if up { (rate.value, rate.per_count) } else { (rate.per_count, rate.value) };
    let what = what.words();
    let scaled = Quantity::join(Arithmetic::Multiply, quantity, Quantity::Given(times), &what)?;
    Quantity::join(Arithmetic::Divide, scaled, Quantity::Given(by), &what)
}

fn fixed_rates() -> Vec<Rate> {
    let table = [
        ("minute", "hour", 60.0),
        ("day", "week", 7.0),
        ("hour", "day", 24.0),
        ("month", "year", 12.0),
        ("second", "minute", 60.0),
    ];
    let rate = |(unit, per, value): &(&str, &str, f64)| Rate {
        value: *value,
        unit: Some(CountedUnit::plain(unit)),
        per: CountedUnit::plain(per),
        per_count: 1.0,
        deed: Deed::Have,
        subject: None,
    };
    table.iter().map(rate).collect()
}

/// A pace is a rate where another amount of what it is per stands in the text; else it is two amounts.
fn settle_paces(facts: &mut Vec<Fact>) {
    let paced = |facts: &[Fact], rate: &Rate| {
        facts.iter().any(|f| matches!(f, Fact::Amount(a) if a.unit.as_ref().is_some_and(|u| u.fits(&rate.per))))
    };
    let mut settled = Vec::new();
    for fact in facts.iter() {
        match fact {
            Fact::Pace(rate, _) if paced(facts, rate) => settled.push(Fact::Rate(rate.clone())),
            Fact::Pace(rate, tags) => {
                for (value, unit) in [(rate.per_count, Some(rate.per.clone())), (rate.value, rate.unit.clone())] {
                    let deed = rate.deed;
                    settled.push(Fact::Amount(Amount {
                        value,
                        unit,
                        deed,
                        tags: tags.clone(),
                        rate: None,
                        in_one: None,
                    }));
                }
            }
            other => settled.push(other.clone()),
        }
    }
    *facts = settled;
}
