//! One clause: which facts it states. What a clause leaves unsaid (subject, verb, what is counted) comes from the
//! clauses before it.

use super::{
    fact::{Amount, Fact, Rate, Relative},
    noun::{self, CountedUnit, Mention, NumberKind},
    verbs::{self, Deed},
};
use crate::simulator::language::{TextToken, singular};

/// What the clauses so far have left behind.
#[derive(Debug, Clone, Default)]
pub(super) struct ClauseContext {
    /// Subject and names of the last clause.
    pub(super) tags: Vec<String>,
    /// The last verb's deed.
    pub(super) deed: Option<Deed>,
    /// What was counted last.
    pub(super) unit: Option<CountedUnit>,
    /// The noun after the last `each`, within the sentence.
    pub(super) each: Option<CountedUnit>,
}

/// The facts of a clause.
pub(super) fn facts(clause: &[TextToken], context: &mut ClauseContext) -> Vec<Fact> {
    let words: Vec<&str> = clause.iter().map(TextToken::word).collect();
    let mentions = noun::mentions(clause);
    let counted = |at: usize| mentions.iter().any(|m| m.at <= at && at < m.end);
    let article = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).copied().unwrap_or_default();
        matches!(before, "a" | "an" | "the" | "per" | "his" | "her" | "their" | "its")
    };
    let noun = |at: usize| counted(at) || article(at);
    let words: Vec<&str> = words.iter().enumerate().map(|(at, word)| if noun(at) { "" } else { *word }).collect();
    let own_deed = verbs::of_clause(&words);
    let deed = own_deed.or(context.deed).unwrap_or(Deed::Have);
    context.deed = Some(deed);
    let own_tags = tags(clause, &mentions);
    if !own_tags.is_empty() {
        let pronoun = clause.iter().any(|t| t.is(&["she", "he", "it", "they"]));
        let mut tags = if pronoun || own_deed.is_none() { context.tags.clone() } else { Vec::new() };
        tags.extend(own_tags);
        context.tags = tags;
    }
    let verb = words.iter().position(|word| verbs::deed(word).is_some());
    let used = vec![false; mentions.len()];
    let mut phrase = Phrase { clause, mentions, used, verb, deed, facts: Vec::new() };
    phrase.relatives(context);
    phrase.shares(context);
    let rates = phrase.rates(context);
    let divisions = phrase.divisions();
    phrase.amounts(&rates, context);
    phrase.facts.extend(divisions.into_iter().map(Fact::Divide));
    let mut facts: Vec<Fact> = rates.into_iter().map(Fact::Rate).collect();
    facts.extend(phrase.facts);
    facts
}

/// A clause while it is read.
pub(super) struct Phrase<'a> {
    pub(super) clause: &'a [TextToken],
    pub(super) mentions: Vec<Mention>,
    pub(super) used: Vec<bool>,
    /// Where the first verb stands.
    pub(super) verb: Option<usize>,
    pub(super) deed: Deed,
    facts: Vec<Fact>,
}

impl Phrase<'_> {
    pub(super) fn word(&self, at: usize) -> &str {
        self.clause.get(at).map(TextToken::word).unwrap_or_default()
    }

    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.clause.iter().any(|t| t.is(words))
    }

    /// Whether a word of this list, parted by blanks, stands in the clause.
    pub(super) fn has_any(&self, list: &str) -> bool {
        self.clause.iter().any(|t| t.among(list))
    }

    pub(super) fn place(&self, words: &[&str]) -> Option<usize> {
        self.clause.iter().position(|t| t.is(words))
    }

    pub(super) fn open(&self) -> Vec<(usize, Mention)> {
        let numbered = self.mentions.iter().cloned().enumerate();
        numbered.filter(|(n, _)| self.used.get(*n) == Some(&false)).collect()
    }

    pub(super) fn take(&mut self, number: usize) {
        if let Some(used) = self.used.get_mut(number) {
            *used = true;
        }
    }

    /// `twice as many … as X`, `5 more … than X`, `doubles`.
    fn relatives(&mut self, context: &mut ClauseContext) {
        for (number, mention) in self.open() {
            let (factor, offset) = match mention.kind {
                NumberKind::Times => (mention.value, 0.0),
                NumberKind::Share { percent: false } if matches!(self.word(mention.end), "as" | "that") => {
                    (mention.value, 0.0)
                }
                NumberKind::More => (1.0, mention.value),
                NumberKind::Fewer => (1.0, -mention.value),
                _ => continue,
            };
            let verb = self.word(mention.at).ends_with(['s', 'd']) && mention.kind == NumberKind::Times;
            if verb || (mention.kind == NumberKind::Times && !self.has(&["as", "than", "that", "the", "more"])) {
                self.take(number);
                self.facts.push(Fact::Scale(factor));
                continue;
            }
            let after = self.clause.get(mention.end..).unwrap_or_default();
            let compared = ["than", "as", "of", "that"];
            let from = if self.word(mention.end) == "as" { 2 } else { 0 };
            let than_at = after.iter().skip(from).position(|t| t.is(&compared)).map(|at| at + from);
            let than = after.get(than_at.map_or(after.len(), |at| at + 1)..).unwrap_or_default();
            let than: Vec<String> = than.iter().filter(|t| !t.word().is_empty()).map(|t| singular(t.word())).collect();
            let named =
                if from == 2 { noun::noun(after.get(2..).unwrap_or_default()).map(|(unit, _)| unit) } else { None };
            let unit = named.or_else(|| mention.unit.clone());
            let inverse = self.clause.first().is_some_and(|t| t.is(&["which", "that", "this"]));
            self.take(number);
            if let Some(unit) = &unit {
                context.unit = Some(unit.clone());
            }
            let tags = context.tags.clone();
            self.facts.push(Fact::Relative(Relative { factor, offset, unit, tags, than, inverse, deed: self.deed }));
        }
    }

    /// Fractions and percentages of what there is.
    fn shares(&mut self, context: &ClauseContext) {
        for (number, mention) in self.open() {
            let NumberKind::Share { percent } = mention.kind else { continue };
            self.take(number);
            let after = self.clause.get(mention.end..).unwrap_or_default();
            let up = self.has_any("increase increases increased rises rise rose grows grew tax tip interest raise raises raised more markup vat");
            let down = self.has_any("discount off reduced decreases decreased reduces falls fell less cheaper drops dropped rebate fewer lower");
            let share = mention.value;
            let fact = if up && !down {
                Fact::Change { share, percent }
            } else if down {
                Fact::Change { share: -share, percent }
            } else if self.has(&["keeps", "keep", "kept"]) {
                Fact::Scale(share)
            } else {
                match Self::label(after) {
                    Some(label) => Fact::Part { value: share, share: Some(percent), unit: None, label },
                    None if matches!(self.deed, Deed::Lose | Deed::Sell | Deed::Work | Deed::Share) => {
                        Fact::Change { share: -share, percent }
                    }
                    None if context.deed == Some(Deed::Gain) => Fact::Change { share, percent },
                    None => Fact::Part { value: share, share: Some(percent), unit: None, label: Vec::new() },
                }
            };
            self.facts.push(fact);
        }
    }

    /// `… are boys`, `… play chess`: the words after the verb that name a part. A loss names none.
    fn label(after: &[TextToken]) -> Option<Vec<String>> {
        let are = [
            "are", "were", "is", "was", "have", "has", "like", "likes", "play", "plays", "wear", "wears", "speak",
            "prefer", "come", "go", "can",
        ];
        let verb = after.iter().position(|t| t.is(&are))?;
        let named = after.get(verb..).unwrap_or_default();
        if named.iter().any(|t| matches!(verbs::deed(t.word()), Some(Deed::Lose | Deed::Sell | Deed::Share))) {
            return None;
        }
        let label: Vec<String> =
            named.iter().filter(|t| t.word().len() > 2 || t.is(&["go"])).map(|t| singular(t.word())).collect();
        let label: Vec<String> = label
            .into_iter()
            .filter(|w| !matches!(w.as_str(), "are" | "were" | "was" | "the" | "have" | "has" | "can"))
            .collect();
        (!label.is_empty()).then_some(label)
    }

    fn divisions(&mut self) -> Vec<f64> {
        let mut by = Vec::new();
        let shared = self.deed == Deed::Share
            || self.has_any("equally evenly packs packed puts put arranges arranged cuts cut pours");
        if !shared {
            return by;
        }
        for (number, mention) in self.open() {
            let link = self.clause.get(..mention.at).unwrap_or_default().iter().rev().take(3);
            let into = link.into_iter().any(|t| t.among("among amongst between into in to onto on by with"));
            if mention.kind == NumberKind::Count && into && mention.value > 0.0 {
                self.take(number);
                by.push(mention.value);
            }
        }
        let open = self.open();
        let two = |one: &Mention, two: &Mention| {
            one.kind == NumberKind::Count && two.kind == NumberKind::Count && one.value > 0.0
        };
        if let (Deed::Share, true, [(number, one), (_, other)]) = (self.deed, by.is_empty(), open.as_slice())
            && two(one, other)
        {
            self.take(*number);
            by.push(one.value);
        }
        by
    }

    fn amounts(&mut self, rates: &[Rate], context: &mut ClauseContext) {
        let open: Vec<(usize, Mention)> =
            self.open().into_iter().filter(|(_, m)| m.kind == NumberKind::Count).collect();
        if let Some(pace) = self.pace(&open) {
            self.facts.push(Fact::Pace(pace, context.tags.clone()));
            return;
        }
        let in_one = self.one_subject().filter(|_| self.deed == Deed::Have);
        for (_, mention) in &open {
            let rest = self.clause.get(mention.end..).unwrap_or_default();
            let bare = mention.unit.is_none() && mention.end <= mention.at + 1;
            let state = rest.first().is_some_and(|t| t.is(&["are", "were"]))
                && !rest.get(1).is_some_and(|t| t.is(&["in", "on", "at", "there", "from"]));
            let part = matches!(self.deed, Deed::Have | Deed::Work) && (bare || state);
            if let Some(label) = part.then(|| Self::label(rest)).flatten() {
                self.facts.push(Fact::Part { value: mention.value, share: None, unit: mention.unit.clone(), label });
                continue;
            }
            let rate = rates.iter().find(|rate| mention.unit.as_ref().is_some_and(|unit| unit.fits(&rate.per)));
            let unit = mention.unit.clone();
            if let Some(unit) = unit.as_ref().filter(|u| !noun::is_time(&u.head)) {
                context.unit = Some(unit.clone());
            }
            let tags = context.tags.clone();
            self.facts.push(Fact::Amount(Amount {
                value: mention.value,
                unit,
                deed: self.deed,
                tags,
                rate: rate.cloned(),
                in_one: in_one.clone(),
            }));
        }
    }
}

/// Names, days and the subject of a clause.
fn tags(clause: &[TextToken], mentions: &[Mention]) -> Vec<String> {
    let counted = |at: usize| mentions.iter().any(|m| m.at <= at && at < m.end);
    let mut found = Vec::new();
    let verb = clause.iter().position(|t| verbs::deed(t.word()).is_some()).unwrap_or(0);
    for (at, token) in clause.iter().enumerate() {
        let TextToken::Word(word) = token else { continue };
        let small = matches!(
            word.text.as_str(),
            "there"
                | "the"
                | "each"
                | "every"
                | "how"
                | "what"
                | "after"
                | "if"
                | "then"
                | "on"
                | "in"
                | "at"
                | "she"
                | "he"
                | "it"
                | "they"
                | "a"
                | "an"
                | "and"
                | "her"
                | "his"
                | "their"
                | "that"
                | "which"
                | "this"
                | "of"
                | "for"
                | "with"
                | "one"
                | "two"
                | "some"
                | "later"
                | "so"
                | "but"
                | "when"
                | "while"
        );
        let name = word.capital && at > 0;
        let subject = at < verb && !counted(at);
        if (name || subject) && !small && word.text.len() > 1 {
            found.push(singular(&word.text));
        }
    }
    found
}
