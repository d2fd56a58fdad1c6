//! What verbs do to a quantity.

use std::{collections::HashMap, sync::LazyLock};

/// What a clause's verb does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// States what there is: has, holds, are.
    Have,
    /// Adds.
    Gain,
    /// Takes away.
    Lose,
    /// Things come, money goes.
    Buy,
    /// Things go, money comes.
    Sell,
    /// Has a price.
    Cost,
    /// Does a part of something: reads, walks. Adds, unless it is asked what is left.
    Work,
    /// States what is needed in the end.
    Need,
    /// Hands over money that change is given from.
    Pay,
    /// Deals out in equal parts.
    Share,
}

/// The deed of a word, if it is a verb that is known.
pub(super) fn deed(word: &str) -> Option<Deed> {
    DEEDS.get(word).copied()
}

static DEEDS: LazyLock<HashMap<&str, Deed>> = LazyLock::new(|| {
    let words = LISTS.iter().flat_map(|(deed, words)| words.split_whitespace().map(|word| (word, *deed)));
    words.collect()
});

const LISTS: &[(Deed, &str)] = &[
    (Deed::Cost, "cost costs costing costed priced charges charge charged"),
    (Deed::Buy, "buy buys bought buying purchase purchases purchased order orders ordered rent rents rented"),
    (Deed::Sell, "sell sells sold selling"),
    (Deed::Need, "need needs needed wants require requires required goal"),
    (Deed::Pay, "pay pays paid paying"),
    (Deed::Share, "share shares shared sharing split splits divide divides divided distribute distributes distributed"),
    (
        Deed::Lose,
        "give gives gave given giving eat eats ate eaten eating lose loses lost losing use uses used using spend \
         spends spent spending leave leaves break breaks broke broken remove removes removed take takes took taken \
         donate donates donated throw throws threw thrown drop drops dropped lend lends lent drink drinks drank drunk \
         die dies died cut cuts burn burns burned burnt return returns returned hand hands handed spill spills \
         spilled fly flies flew escape escapes escaped rot rots rotted fall falls fell mail mails mailed \
         shipped unload unloads unloaded deliver delivers delivered send sends sent withdraw withdraws withdrew consume consumes consumed \
         feed feeds fed tear tears tore torn melt melts melted discard discards discarded pop pops popped \
         wither withers withered",
    ),
    (
        Deed::Work,
        "read reads reading solve solves solved finish finishes finished complete completes completed walk walks \
         walked run runs ran drive drives drove driven travel travels travelled traveled cycle cycles cycled \
         ride rides rode swim swims swam paint paints painted type types typed clean cleans cleaned wash washes \
         washed mow mows mowed cover covers covered",
    ),
    (
        Deed::Gain,
        "get gets got getting receive receives received find finds found pick picks picked collect collects collected \
         add adds added adding bake bakes baked make makes made making earn earns earned win wins won arrive arrives \
         arrived join joins joined save saves saved borrow borrows borrowed harvest harvests harvested build builds \
         built catch catches caught plant plants planted produce produces produced gather gathers gathered enter \
         enters entered come comes came score scores scored write writes wrote print prints printed sew sews sewed \
         knit knits grow grows grew lay lays laid pours poured pour fill fills filled load loads loaded board boards boarded",
    ),
    (
        Deed::Have,
        "has have had having is are was were be holds hold held contains contain contained starts start started \
         begins began owns own owned keeps keep kept includes include weighs weigh carries carry seats seat",
    ),
];

/// The deed of a clause: the first verb that says more than "has" or "are", else that one. A phrase such as
/// `get off` turns a gain into a loss.
pub(super) fn of_clause(words: &[&str]) -> Option<Deed> {
    let phrase = |first: &[&str], second: &[&str]| {
        words.windows(2).any(|pair| matches!(pair, [a, b] if first.contains(a) && second.contains(b)))
    };
    if phrase(&["pays", "paid", "pay", "paying"], &["with"]) {
        return Some(Deed::Pay);
    }
    if phrase(&["get", "gets", "got", "getting"], &["off", "out"]) || phrase(&["sold", "sell", "sells"], &["out"]) {
        return Some(Deed::Lose);
    }
    if phrase(&["left"], &["the", "early", "at", "for"]) {
        return Some(Deed::Lose);
    }
    if phrase(&["picks", "picked", "takes", "took"], &["up"]) {
        return Some(Deed::Gain);
    }
    if phrase(&["go", "goes", "went", "go", "run", "ran", "walk", "walked"], &["away", "out"]) {
        return Some(Deed::Lose);
    }
    let deeds: Vec<Deed> = words.iter().filter_map(|word| deed(word)).collect();
    let strong = deeds.iter().find(|deed| **deed != Deed::Have).or(deeds.first()).copied();
    match strong {
        Some(Deed::Pay) => Some(Deed::Lose),
        other => other,
    }
}

/// The sign of an amount: `+1` or `-1`. `money` is whether it is counted in money.
pub(super) fn sign(deed: Deed, money: bool) -> f64 {
    match deed {
        Deed::Lose => -1.0,
        Deed::Buy | Deed::Cost if money => -1.0,
        Deed::Sell if !money => -1.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_have_deeds() {
        let check = |text: &str, expected| {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(of_clause(&words), expected, "{text}");
        };
        check("she gives away pencils", Some(Deed::Lose));
        check("pencils are sold", Some(Deed::Sell));
        check("passengers get off", Some(Deed::Lose));
        check("he pays with a bill", Some(Deed::Pay));
        check("there are trees", Some(Deed::Have));
        check("a pen", None);
    }
}
