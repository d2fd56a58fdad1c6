//! Rates in a clause: `12 pencils per box`, `each box has 12 pencils`, `pens cost 2 dollars`, `12 pages in 3 minutes`.

use super::{
    clause::{ClauseContext, Phrase},
    fact::Rate,
    noun::{self, CountedUnit, Mention, NumberKind},
    verbs::Deed,
};
use crate::simulator::language::{TextToken, same_number, singular};

impl Phrase<'_> {
    /// The rates that the clause states; their numbers are taken.
    pub(super) fn rates(&mut self, context: &mut ClauseContext) -> Vec<Rate> {
        let mut rates = Vec::new();
        for (number, mention) in self.open() {
            if mention.kind != NumberKind::Count || self.used.get(number) != Some(&false) {
                continue;
            }
            let found = self.per_after(&mention).or_else(|| self.each_before(number, &mention, context));
            let found = found.or_else(|| self.each_after(number, &mention, context));
            let found = found.or_else(|| self.holds(number, &mention)).or_else(|| self.bare_of(&mention));
            let found = found.or_else(|| self.price(number, &mention));
            if let Some((per, per_count)) = found {
                self.take(number);
                let subject = self.one_subject().filter(|subject| !subject.fits(&per));
                rates.push(Rate { value: mention.value, unit: mention.unit, per, per_count, deed: self.deed, subject });
            }
        }
        rates
    }

    /// `12 pencils per box`, `in each box`, `a day`.
    fn per_after(&self, mention: &Mention) -> Option<(CountedUnit, f64)> {
        let mut at = mention.end;
        if self.word(at) == "of" || matches!(self.word(at), "more" | "pages") {
            at += 2;
        }
        let preposition = matches!(self.word(at), "in" | "for" | "on" | "from" | "to" | "with" | "into" | "at");
        let marker = if preposition { at + 1 } else { at };
        let (unit, _) = noun::noun(self.clause.get(marker + 1..)?)?;
        let money = mention.unit.as_ref().is_some_and(CountedUnit::is_money);
        let fits = match self.word(marker) {
            "per" | "every" => true,
            "each" => !matches!(self.word(marker + 1), "of" | "and" | "for" | "in"),
            "a" | "an" => {
                !preposition && (money || noun::is_time(&unit.head)) && !matches!(self.word(marker + 2), "of")
            }
            _ => return self.daily(mention),
        };
        fits.then_some((unit, 1.0))
    }

    fn daily(&self, mention: &Mention) -> Option<(CountedUnit, f64)> {
        match self.word(mention.end) {
            "daily" => Some((CountedUnit::plain("day"), 1.0)),
            "weekly" => Some((CountedUnit::plain("week"), 1.0)),
            _ => None,
        }
    }

    /// `each box has 12 pencils`, `each of the 5 shelves holds 8 books`, `a pencil costs 3 dollars`.
    fn each_before(&self, number: usize, mention: &Mention, context: &mut ClauseContext) -> Option<(CountedUnit, f64)> {
        let before = self.clause.get(..mention.at)?;
        let Some(each) = before.iter().rposition(|t| t.is(&["each", "every"])) else {
            let own_subject = self.place(&["he", "she", "they", "it", "there"]).is_some();
            let carried = (number == 0 && !own_subject).then(|| context.each.clone()).flatten();
            return carried.map(|unit| (unit, 1.0));
        };
        let after = before.get(each + 1..)?;
        let counted = self.mentions.get(..number)?.iter().rev().find(|m| m.at > each).and_then(|m| m.unit.clone());
        let named = if after.first().is_some_and(|t| t.is(&["of", "one"])) {
            None
        } else {
            noun::noun(after).map(|(unit, _)| unit)
        };
        let own = self.mentions.get(..number)?.last().filter(|m| m.end == each).and_then(|m| m.unit.clone());
        let unit = counted.or(own).or(named).or_else(|| context.unit.clone())?;
        context.each = Some(unit.clone());
        Some((unit, 1.0))
    }

    /// `4 boxes with 12 pencils each`, `pens cost 2 dollars each`.
    fn each_after(&self, number: usize, mention: &Mention, context: &ClauseContext) -> Option<(CountedUnit, f64)> {
        let mut at = mention.end;
        if matches!(self.word(at), "of" | "in" | "on") {
            at += 2;
        }
        if !matches!(self.word(at), "each" | "apiece" | "every") {
            return None;
        }
        let counted = self.mentions.get(..number)?.iter().rev().find(|m| m.kind == NumberKind::Count);
        let counted = counted.and_then(|m| m.unit.clone());
        let unit = counted.or_else(|| self.subject()).or_else(|| context.unit.clone())?;
        Some((unit, 1.0))
    }

    /// `4 boxes of 12 pencils`, `5 bags that hold 3 apples`.
    fn holds(&self, number: usize, mention: &Mention) -> Option<(CountedUnit, f64)> {
        let before = self.mentions.get(number.checked_sub(1)?)?;
        let unit = before.unit.clone().filter(|unit| !unit.is_measure() && !unit.is_money())?;
        let between = self.clause.get(before.end..mention.at)?;
        let links = [
            "with",
            "of",
            "that",
            "which",
            "holding",
            "containing",
            "hold",
            "holds",
            "contain",
            "contains",
            "at",
            "seating",
        ];
        let linked = between.iter().any(|t| t.among("with of holding containing hold holds contain contains at"));
        let money = mention.unit.as_ref().is_some_and(CountedUnit::is_money);
        let at_price = between.iter().any(|t| t.is(&["at"]));
        let all_links = between.iter().all(|t| t.is(&links) || *t == TextToken::Comma);
        (linked && all_links && !same_number(before.value, 1.0) && at_price == money).then_some((unit, 1.0))
    }

    /// `boxes of 6`, where nobody says how many boxes.
    fn bare_of(&self, mention: &Mention) -> Option<(CountedUnit, f64)> {
        let of = mention.at.checked_sub(1)?;
        let container = of.checked_sub(1)?;
        let word = self.word(container);
        let plural = singular(word) != word && !self.mentions.iter().any(|m| m.end == of);
        (self.word(of) == "of" && plural).then(|| (CountedUnit::plain(&singular(word)), 1.0))
    }

    /// `a pencil costs 3 dollars`, `3 pens cost 6 dollars`.
    fn price(&self, number: usize, mention: &Mention) -> Option<(CountedUnit, f64)> {
        let money = mention.unit.as_ref().is_some_and(CountedUnit::is_money);
        if !money || self.deed != Deed::Cost || self.has(&["total", "altogether", "fixed", "delivery", "shipping"]) {
            return None;
        }
        if number > 0 {
            return None;
        }
        self.subject().map(|unit| (unit, 1.0))
    }

    /// The noun before the verb.
    fn subject(&self) -> Option<CountedUnit> {
        let before = self.clause.get(..self.verb?)?;
        let start = before
            .iter()
            .rposition(|t| matches!(t, TextToken::Comma) || t.is(&["if", "and", "that", "when", "while", "where"]));
        let words = before.get(start.map_or(0, |at| at + 1)..)?;
        let each = words.first().is_some_and(|t| t.is(&["each", "every"]));
        let (unit, _) = noun::noun(words.get(usize::from(each)..)?)?;
        Some(unit)
    }

    /// The noun of `a hen lays`, `each worker earns`.
    pub(super) fn one_subject(&self) -> Option<CountedUnit> {
        let one = self.clause.first().is_some_and(|t| t.is(&["a", "an", "one", "each", "every"]));
        self.subject().filter(|_| one)
    }

    /// `12 pages in 3 minutes`, `3 pens cost 6 dollars`.
    pub(super) fn pace(&self, open: &[(usize, Mention)]) -> Option<Rate> {
        let [(_, one), (_, two)] = open else { return None };
        let (first, second) = (one.unit.clone()?, two.unit.clone()?);
        let rate = |much: &Mention, unit, count: &Mention, per| {
            let rate = Rate {
                value: much.value,
                unit: Some(unit),
                per,
                per_count: count.value,
                deed: self.deed,
                subject: None,
            };
            (count.value > 0.0).then_some(rate)
        };
        let linked = |words: &[&str]| two.at.checked_sub(1).is_some_and(|at| words.contains(&self.word(at)));
        if second.is_money() && (self.deed == Deed::Cost || linked(&["for"])) && !first.is_money() {
            return rate(two, second, one, first);
        }
        (noun::is_time(&second.head) && !noun::is_time(&first.head) && linked(&["in"]))
            .then(|| rate(one, first, two, second))?
    }
}
