//! Random systems, played out: how often a claim without an effect is taken for shown, how many wrong rows a data set
//! holds, and how often a real effect is seen.

use super::{Arm, Claim, Next, ProofSample, Terms, selected_count};
use crate::trajectory::{Standing, Void};

/// A system: the chance to pass without and with the treatment at each execution, and the share of void ones.
#[derive(Debug, Clone, Copy)]
struct System {
    control: f64,
    treated: f64,
    /// By how much both chances fall from the first execution to the fortieth: a provider that gets worse.
    drift: f64,
    void: f64,
}

/// Draws that depend on a name alone.
pub(super) struct Draws(blake3::OutputReader);

impl Draws {
    pub(super) fn seeded(name: &str) -> Self {
        Self(blake3::Hasher::new().update(name.as_bytes()).finalize_xof())
    }

    pub(super) fn uniform(&mut self) -> f64 {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / 4_294_967_296.0
    }

    fn sample(&mut self, system: System, arm: Arm, number: usize) -> ProofSample {
        if self.uniform() < system.void {
            return ProofSample::Void(Void::Unanswered);
        }
        let chance = match arm {
            Arm::Control => system.control,
            Arm::Treated => system.treated,
        };
        let worse = system.drift * number as f64 / 40.0;
        if self.uniform() < (chance - worse).max(0.0) { ProofSample::Passed } else { ProofSample::Failed }
    }
}

/// One claim from its first execution to its end: where it stands, its e-value, its executions.
fn play(system: System, draws: &mut Draws) -> (Standing, f64, usize) {
    let terms = Terms::default();
    let (mut control, mut treated) = (Vec::new(), Vec::new());
    loop {
        let claim = Claim::injection(&terms, &control, &treated);
        let arm = match claim.next() {
            Next::Stop(standing) => {
                return (standing, claim.executed().e.unwrap_or_default(), control.len() + treated.len());
            }
            Next::Execute(arm) => arm,
        };
        let samples = match arm {
            Arm::Control => &mut control,
            Arm::Treated => &mut treated,
        };
        samples.push(draws.sample(system, arm, samples.len()));
        assert!(control.len() + treated.len() < 200, "every claim ends");
    }
}

#[test]
fn a_claim_without_an_effect_is_seldom_shown_at_any_rate_of_chance_errors() {
    let (mut claims, mut shown) = (0, 0);
    for (noise, drift, void) in [
        (0.0, 0.0, 0.0),
        (0.02, 0.0, 0.0),
        (0.1, 0.0, 0.05),
        (0.2, 0.0, 0.0),
        (0.3, 0.0, 0.2),
        (0.1, 0.3, 0.0),
        (0.2, 0.5, 0.1),
        (0.5, 0.0, 0.0),
    ] {
        let mut draws = Draws::seeded(&format!("null {noise} {drift} {void}"));
        let system = System { control: 1.0 - noise, treated: 1.0 - noise, drift, void };
        let of = 2_000;
        let here = (0..of).filter(|_| play(system, &mut draws).0 == Standing::Verified).count();
        println!("noise {noise}, drift {drift}, void {void}: {here} of {of} claims without an effect shown");
        // At most alpha times the expected yield, one in a thousand; 2,000 of them leave room for 8 by chance.
        assert!(here <= 8, "{here}");
        claims += of;
        shown += here;
    }
    assert!(shown * 1_000 <= claims, "{shown} of {claims}");
}

#[test]
fn a_data_set_holds_at_most_a_share_alpha_of_wrong_rows_in_the_mean() {
    let (sets, alpha) = (120, 0.01);
    for (share, noise) in [(0.0, 0.2), (0.1, 0.2), (0.3, 0.1), (0.5, 0.3)] {
        let mut draws = Draws::seeded(&format!("set {share} {noise}"));
        let (mut wrong_shares, mut rows, mut real) = (0.0, 0, 0);
        for _ in 0..sets {
            let claims: Vec<(bool, f64)> = (0..50)
                .map(|_| {
                    let works = draws.uniform() < share;
                    let treated = if works { noise } else { 1.0 - noise };
                    let system = System { control: 1.0 - noise, treated, drift: 0.0, void: 0.02 };
                    (works, play(system, &mut draws).1)
                })
                .collect();
            let e_values: Vec<f64> = claims.iter().map(|(_, e)| *e).collect();
            let keep = selected_count(&e_values, claims.len(), alpha);
            let mut strongest = claims.clone();
            strongest.sort_by(|a, b| b.1.total_cmp(&a.1));
            let wrong = strongest.iter().take(keep).filter(|(works, _)| !works).count();
            wrong_shares += if keep == 0 { 0.0 } else { wrong as f64 / keep as f64 };
            rows += keep;
            real += claims.iter().filter(|(works, _)| *works).count();
        }
        let wrong = wrong_shares / f64::from(sets);
        println!(
            "{share} of claims true, noise {noise}: {rows} of {real} kept, {:.4} % wrong in the mean",
            wrong * 100.0
        );
        assert!(wrong <= alpha, "{wrong}");
    }
}

#[test]
fn an_effect_is_seen() {
    for (control, treated, least) in
        [(1.0, 0.0, 1.0), (0.95, 0.05, 0.9), (0.9, 0.1, 0.85), (0.8, 0.2, 0.65), (0.9, 0.3, 0.6)]
    {
        let mut draws = Draws::seeded(&format!("power {control} {treated}"));
        let of = 2_000;
        let played: Vec<_> =
            (0..of).map(|_| play(System { control, treated, drift: 0.0, void: 0.0 }, &mut draws)).collect();
        let shown = played.iter().filter(|(standing, _, _)| *standing == Standing::Verified).count();
        let executions = played.iter().map(|(_, _, executions)| executions).sum::<usize>() as f64 / f64::from(of);
        let power = shown as f64 / f64::from(of);
        println!("null {control}, treated {treated}: shown {power:.3}, {executions:.1} executions a claim begun");
        assert!(power >= least, "{control} {treated}: {power}");
    }
}

#[test]
fn a_provider_that_fails_makes_a_claim_void_and_shows_none() {
    let mut draws = Draws::seeded("down");
    let system = System { control: 1.0, treated: 0.0, drift: 0.0, void: 0.6 };
    let standings: Vec<_> = (0..1_000).map(|_| play(system, &mut draws).0).collect();
    let void = standings.iter().filter(|standing| **standing == Standing::Void).count();
    assert!(void > 900, "{void}");
}

/// What follows a pattern of its own, whatever the arm: replicas that take turns, a file that a program toggles. With a fixed order
/// of the arms such a pattern lines up with them, and each claim is shown.
#[test]
fn a_pattern_in_time_lines_up_with_no_arm() {
    for pattern in ["fp", "pf", "ffp", "fpp", "fppp", "ffpp", "fffppp", "ffffp"] {
        let outcomes: Vec<_> =
            pattern.chars().map(|o| if o == 'p' { ProofSample::Passed } else { ProofSample::Failed }).collect();
        let of = 1_000;
        let shown = (0..of).filter(|claim| {
            let terms = Terms::default().drawn_for(&format!("{pattern} {claim}"));
            let (mut control, mut treated) = (Vec::new(), Vec::new());
            for outcome in outcomes.iter().cycle() {
                match Claim::injection(&terms, &control, &treated).next() {
                    Next::Stop(standing) => return standing == Standing::Verified,
                    Next::Execute(Arm::Control) => control.push(*outcome),
                    Next::Execute(Arm::Treated) => treated.push(*outcome),
                }
            }
            false
        });
        let shown = shown.count();
        println!("{pattern}: {shown} of {of} claims without an effect shown");
        // Six pairs or more would have to be drawn as the pattern goes.
        assert!(shown <= 10, "{pattern}: {shown} of {of}");
    }
}
