//! The container file, as far as it can be told without an image registry: what it copies is there, its compiler is the one that
//! the manifest asks for, what it builds is what it takes over, and nothing large or private goes in.

use std::{fs, path::Path};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The instructions of a container file: the word that begins each, and the rest.
fn instructions(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
        .collect()
}

#[test]
fn the_container_file_builds_what_this_repository_is() {
    let file = instructions(&read("examples/ci/Containerfile"));
    let of =
        |word: &str| file.iter().filter(|(known, _)| known == word).map(|(_, rest)| rest.as_str()).collect::<Vec<_>>();
    let manifest: toml::Value = toml::from_str(&read("Cargo.toml")).expect("a manifest");
    let package = &manifest["workspace"]["package"];

    let [build, ships] = of("FROM")[..] else { panic!("two stages: {file:?}") };
    let rust = package["rust-version"].as_str().expect("a version");
    let (tag, name) = build.split_once(" AS ").expect("a named stage");
    let release = tag.rsplit('-').next().expect("a release");
    assert_eq!(tag, format!("docker.io/library/rust:{rust}-slim-{release}"), "the compiler of `rust-version`");
    assert_eq!(ships, format!("docker.io/library/debian:{release}-slim"), "the glibc that it was built against");

    let compile = of("RUN").into_iter().find(|line| line.starts_with("cargo build ")).expect("it compiles");
    let option = |name: &str| compile.split(' ').skip_while(|word| *word != name).nth(1).expect("an option");
    let (profile, bin) = (option("--profile"), option("--bin"));
    assert!(manifest["profile"].get(profile).is_some(), "no profile `{profile}`");
    assert!(compile.contains("--locked"), "{compile}");
    let bins = manifest["bin"].as_array().expect("programs");
    assert!(bins.iter().any(|known| known["name"].as_str() == Some(bin)), "no program `{bin}`");

    let place = of("WORKDIR")[0];
    let built = format!("{place}/target/{profile}/{bin}");
    for copied in of("COPY") {
        let mut words: Vec<&str> = copied.split(' ').collect();
        let from = words.iter().position(|word| word.starts_with("--from=")).map(|at| words.remove(at));
        let sources = words.get(..words.len() - 1).expect("sources");
        if let Some(stage) = from {
            assert_eq!((stage, sources), (&*format!("--from={name}"), &[&*built][..]));
        } else {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            assert!(sources.iter().all(|source| root.join(source).exists()), "{copied}");
        }
    }
    assert_eq!(of("ENTRYPOINT"), [format!("[\"{bin}\"]")]);
    assert!(of("USER").iter().all(|user| user.parse::<u32>().is_ok_and(|user| user > 0)), "a number, and not root's");
}

/// What git does not keep is not copied into an image either: what is made is large, recordings hold what was said.
#[test]
fn nothing_that_git_leaves_out_goes_into_an_image() {
    let ignored = read(".dockerignore");
    for line in read(".gitignore").lines().filter(|line| !line.is_empty() && !line.contains("proptest")) {
        let name = line.trim_matches('/');
        let known = ignored.lines().any(|known| known.trim_start_matches("**/").trim_matches('/') == name);
        assert!(known, ".dockerignore lacks `{line}`");
    }
    assert!(ignored.lines().any(|line| line == "/.git"), "history is no part of it");
}
