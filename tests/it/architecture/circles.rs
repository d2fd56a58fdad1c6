//! No files of a crate name each other in a circle. What a file and those of its own folder name of each other is no circle: they are
//! one thing, told in parts.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, UseTree, Visibility};

use super::{
    crates,
    paths::{Named, Source, named, sources},
    roots,
};

/// Modules by their paths, each with what it hands on of others: name by name, and where that is.
struct Modules(BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>>);

impl Modules {
    fn of_sources(sources: &[Source]) -> Self {
        let of_source = |source: &Source| {
            let mut handed_on = BTreeMap::new();
            for item in &source.syntax.items {
                if let Item::Use(used) = item
                    && !matches!(used.vis, Visibility::Inherited)
                {
                    hand_on(&used.tree, &mut Vec::new(), &source.module, &mut handed_on);
                }
            }
            (source.module.clone(), handed_on)
        };
        Self(sources.iter().map(of_source).collect())
    }

    /// The module in which a path from the root ends, through what others hand on.
    fn place(&self, path: &[String]) -> Option<Vec<String>> {
        let mut at: Vec<String> = Vec::new();
        for (number, name) in path.iter().enumerate() {
            let below = [&at[..], std::slice::from_ref(name)].concat();
            if self.0.contains_key(&below) {
                at = below;
            } else if let Some(from) = self.0.get(&at).and_then(|handed_on| handed_on.get(name)) {
                return self.place(&[&from[..], &path[number + 1..]].concat());
            } else {
                break;
            }
        }
        Some(at).filter(|at| !at.is_empty())
    }
}

/// Takes in what a `pub use` names, from the root.
fn hand_on(tree: &UseTree, before: &mut Vec<String>, module: &[String], found: &mut BTreeMap<String, Vec<String>>) {
    let mut add = |name: String, own: String| {
        let mut path = module.to_vec();
        for segment in before.iter().chain([&own]) {
            match segment.as_str() {
                "crate" => path.clear(),
                "super" => drop(path.pop()),
                "self" => {}
                _ => path.push(segment.clone()),
            }
        }
        found.insert(name, path);
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            hand_on(&path.tree, before, module, found);
            before.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| hand_on(tree, before, module, found)),
        UseTree::Name(name) => add(name.ident.to_string(), name.ident.to_string()),
        UseTree::Rename(name) => add(name.rename.to_string(), name.ident.to_string()),
        UseTree::Glob(_) => {}
    }
}

/// Which modules each module names, by which name, but those of its own folder.
type Arrows = BTreeMap<Vec<String>, BTreeMap<Vec<String>, String>>;

fn arrows(sources: &[Source]) -> Arrows {
    let (modules, crates) = (Modules::of_sources(sources), crates());
    let is_beside = |from: &[String], to: &[String]| !from.starts_with(to) && !to.starts_with(from);
    let of_source = |source: &Source| {
        let names = named(source, &crates).into_iter();
        let own = names.filter(|name| !name.tests && !name.method && name.path.first().is_some_and(|at| at == "crate"));
        let places = own.filter_map(|Named { path, .. }| Some((modules.place(&path[1..])?, path.last()?.clone())));
        (source.module.clone(), places.filter(|(to, _)| is_beside(&source.module, to)).collect())
    };
    sources.iter().filter(|source| !source.tests).map(of_source).collect()
}

/// All that can be reached from a module.
fn reached(arrows: &Arrows, from: &[String]) -> BTreeSet<Vec<String>> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from.to_vec()]);
    while let Some(module) = next.pop() {
        for to in arrows.get(&module).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(to.clone()) {
                next.push(to.clone());
            }
        }
    }
    seen
}

#[test]
fn no_files_name_each_other_in_a_circle() {
    let (mut circles, mut count) = (Vec::new(), 0);
    for root in roots() {
        let arrows = arrows(&sources(&root.join("lib.rs")));
        for (from, named) in &arrows {
            count += named.len();
            let back = named.iter().filter(|(to, _)| reached(&arrows, to).contains(from));
            let line =
                |(to, name): (&Vec<String>, &String)| format!("{} names {} ({name})", from.join("::"), to.join("::"));
            circles.extend(back.map(line));
        }
    }
    assert!(count > 2000, "{count}");
    assert!(circles.is_empty(), "each of these is part of a circle:\n{}", circles.join("\n"));
}
