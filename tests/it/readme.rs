//! README's commands, run as they stand there: they are the first a newcomer tries.

use std::{env, path::Path, process::Command};

use crate::cli::{Started, plimsoll};

const README: &str = include_str!("../../README.md");

/// Where README has the demo.
const ADDRESS: &str = "127.0.0.1:7420";
const FOLDER: &str = "/tmp/plimsoll-demo";

/// What README has a shell do with the demo, but for what serves until it is stopped.
fn commands() -> String {
    let blocks = README.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    blocks
        .filter(|block| block.contains(ADDRESS) || block.contains(FOLDER))
        .flat_map(str::lines)
        .filter(|line| !line.starts_with("plimsoll open"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_commands_of_the_readme_work_on_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("demo").display().to_string();
    let demo = Started::new(plimsoll(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        &dir,
    ]));
    let commands = commands()
        .replace(ADDRESS, &demo.address.to_string())
        .replace(FOLDER, &dir);
    for what in [
        "/repair",
        "/history-export",
        "plimsoll export",
        "plimsoll verify",
    ] {
        assert!(commands.contains(what), "{what} is not in {commands}");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-eux", "-c", &commands])
        .current_dir(folder.path())
        .env("PATH", path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("repair_dispatched"), "{said}");
    assert!(
        said.contains("sealed and intact, signed with this key"),
        "{said}"
    );
}
