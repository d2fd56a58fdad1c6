//! In which order a search tries what is open. Orders differ in what they pay, never in what they conclude.

use super::{Order, Search, Stands, TriedClaim, TriedWords};

impl Search {
    /// The claims that are worth a further execution, the next first; none: there is nothing left to learn.
    pub(super) fn queue(&self) -> Vec<usize> {
        let Some((first, last)) = self.outermost() else {
            let open: Vec<usize> = self.open(0..self.question.steps.len());
            if self.is_guided() {
                return if open.is_empty() { self.couples() } else { self.claims_of(&self.guided(&open)) };
            }
            // A look at each comes before any is pursued to its end.
            let looks: Vec<usize> = open.iter().copied().filter(|step| !self.is_looked_at(*step)).collect();
            let steps = if looks.is_empty() { self.ordered(open) } else { self.ordered(looks) };
            return if steps.is_empty() { self.couples() } else { self.claims_of(&steps) };
        };
        let mut steps = Vec::new();
        if self.question.earliest {
            steps.extend(self.ordered(self.worthwhile(0..first)));
        }
        if self.question.last {
            // From the end: the last that is shown makes those before it unnecessary.
            steps.extend(self.worthwhile(last + 1..self.question.steps.len()).into_iter().rev());
        }
        self.claims_of(&steps)
    }

    /// The first and the last step whose effect is shown.
    pub(super) fn outermost(&self) -> Option<(usize, usize)> {
        let mut shown = (0..self.question.steps.len()).filter(|step| self.stands(*step) == Stands::Shown);
        let first = shown.next()?;
        Some((first, shown.next_back().unwrap_or(first)))
    }

    fn open(&self, steps: std::ops::Range<usize>) -> Vec<usize> {
        steps.filter(|step| self.stands(*step) == Stands::Open).collect()
    }

    /// The open steps of a range that is to be cleared. Where one of it cannot be, the others are looked at only: they may
    /// be decisive themselves, but clearing them would say nothing.
    fn worthwhile(&self, steps: std::ops::Range<usize>) -> Vec<usize> {
        let stands = |step| self.stands(step);
        let stuck = steps.clone().any(|step| !stands(step).is_cleared() && stands(step) != Stands::Open);
        let open = self.open(steps);
        open.into_iter().filter(|step| !(stuck && self.is_looked_at(*step))).collect()
    }

    fn is_looked_at(&self, step: usize) -> bool {
        self.tried(step).is_some_and(TriedClaim::is_looked_at)
    }

    fn tried(&self, step: usize) -> Option<&TriedClaim> {
        self.claims.get(self.of_step.get(step).copied().flatten()?)
    }

    fn claims_of(&self, steps: &[usize]) -> Vec<usize> {
        steps.iter().filter_map(|step| self.of_step.get(*step).copied().flatten()).collect()
    }

    /// The couples that may be at fault, where no single step is: neither heals alone, and they were not seen not to heal
    /// together.
    fn couples(&self) -> Vec<usize> {
        let first = self.claims.len().saturating_sub(self.question.couples.len());
        let shown = |couple| self.couple(couple).is_some_and(|tried| tried.stands == Stands::Shown);
        if (0..self.question.couples.len()).any(shown) {
            return Vec::new();
        }
        let alone = |step| self.stands(step) == Stands::Excluded;
        let couples = self.question.couples.iter().enumerate().filter(|(index, couple)| {
            let open = |tried: &TriedClaim| tried.stands == Stands::Open && !tried.is_looked_at();
            alone(couple.steps.0) && alone(couple.steps.1) && self.couple(*index).is_some_and(open)
        });
        couples.map(|(index, _)| first + index).collect()
    }

    fn ordered(&self, mut steps: Vec<usize>) -> Vec<usize> {
        match self.question.order {
            Order::Bisect => {
                let (look, middle) = self.halved();
                steps.sort_by_key(|step| {
                    let heals = self.tried(*step).is_some_and(|tried| tried.passed > tried.failed);
                    (Some(*step) != look, (2 * step + 1).abs_diff(2 * middle), !heals)
                });
            }
            Order::BestFirst if self.is_guided() => steps = self.guided(&steps),
            // What has to be cleared is paid for in whatever order; from the front nothing is paid in vain.
            Order::Scan | Order::BestFirst => {}
        }
        steps
    }

    /// Halves the row of steps that have something to try. Other words heal from the decisive step on, a fresh draw up to
    /// it. Gives the step that is to be looked at for that, if one is, and the place where the row parts.
    fn halved(&self) -> (Option<usize>, usize) {
        let row: Vec<usize> = (0..self.of_step.len()).filter(|step| self.tried(*step).is_some()).collect();
        let (mut low, mut high) = (0, row.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let Some((step, tried)) = row.get(middle).and_then(|step| Some((*step, self.tried(*step)?))) else { break };
            if tried.passed + tried.failed == 0 && tried.stands == Stands::Open {
                return (Some(step), step);
            }
            let heals = tried.passed > tried.failed;
            if heals == (tried.by == TriedWords::Drawn) { low = middle + 1 } else { high = middle }
        }
        (None, row.get(low).copied().unwrap_or(self.of_step.len()))
    }

    /// Whether suspicion has a say: where one step that is shown is enough, or where none can be cleared anyway.
    fn is_guided(&self) -> bool {
        let clears = self.question.earliest || self.question.last;
        self.question.order == Order::BestFirst
            && !(clears && self.claims.iter().any(|tried| tried.by != TriedWords::Proposed))
    }

    /// What healed comes first, as long as its pairs speak for it. Then each step is looked at once: by turns the most
    /// suspicious one, and the first one. A scan looks twice at each, so that whoever is suspected in vain costs one
    /// execution more than a scan and no further one. What is left comes last, from the front.
    fn guided(&self, open: &[usize]) -> Vec<usize> {
        let (mut pursued, mut fresh, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (step, tried) in open.iter().filter_map(|step| Some((*step, self.tried(*step)?))) {
            match () {
                () if tried.passed + tried.failed == 0 => fresh.push((step, tried.suspicion)),
                () if tried.begun && tried.e >= 1.0 => pursued.push((step, tried.e)),
                () => left.push((tried.begun || tried.is_looked_at(), step)),
            }
        }
        // Stable: of equals the earlier step stays first.
        pursued.sort_by(|a, b| b.1.total_cmp(&a.1));
        left.sort_unstable();
        let looked = self.of_step.iter().flatten().filter_map(|claim| self.claims.get(*claim));
        let mut suspects = looked.filter(|tried| tried.passed + tried.failed > 0).count() % 2 == 0;
        let mut steps: Vec<usize> = pursued.into_iter().map(|(step, _)| step).collect();
        while !fresh.is_empty() {
            let most = |best: usize, at: usize| {
                let suspicion = |at: usize| fresh.get(at).map_or(0.0, |(_, suspicion)| *suspicion);
                if suspicion(at) > suspicion(best) { at } else { best }
            };
            let next = if suspects { (0..fresh.len()).fold(0, most) } else { 0 };
            steps.push(fresh.remove(next).0);
            suspects = !suspects;
        }
        steps.extend(left.into_iter().map(|(_, step)| step));
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::systems::{Case, Source, Topology},
        *,
    };

    #[test]
    fn halves_are_looked_at_from_their_middle_on() {
        let search = Search::new(Case::new(Topology::Late, Source::Twin, Order::Bisect, false).question);
        assert_eq!(search.ordered((0..search.of_step.len()).collect()), [4, 3, 2, 5, 1, 6, 0, 7]);
    }
}
