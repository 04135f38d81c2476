//! The example of the documents, killed in the middle and started again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where cargo puts examples; built here when only this test was asked for.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its program");
    let profile = test.parent().and_then(Path::parent).expect("it lies below its target directory");
    let program = profile.join("examples/order_workflow");
    if !program.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--package", "reveille-duroxide", "--example", "order_workflow", "--target-dir"]);
        build.arg(profile.parent().expect("a profile lies in a target directory"));
        let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
        assert!(built.success(), "the example cannot be built");
    }
    program
}

/// Runs the example until it prints `last` or ends, and returns what it printed.
fn run(dir: &Path, last: Option<&str>) -> (Vec<String>, Child) {
    let mut child = Command::new(program()).arg(dir).stdout(Stdio::piped()).spawn().expect("the example starts");
    let out = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut printed = Vec::new();
    for line in out.lines().map_while(Result::ok) {
        let done = last.is_some_and(|last| line.contains(last));
        printed.push(line);
        if done {
            break;
        }
    }
    (printed, child)
}

#[test]
fn the_order_of_the_example_is_resumed_after_kill_9_and_each_step_is_done_once() {
    let dir = tempfile::Builder::new().prefix("rvl-order-").tempdir().expect("a directory can be made");
    let open = Command::new("chmod").arg("711").arg(dir.path()).status();
    assert!(open.is_ok_and(|status| status.success()));

    let (mut printed, mut child) = run(dir.path(), Some("waits for the courier"));
    child.kill().expect("a process can be killed");
    child.wait().expect("and ends");
    let (rest, mut child) = run(dir.path(), None);
    let ended = child.wait().expect("the example ends");

    assert!(ended.success(), "{rest:#?}");
    assert!(rest.iter().any(|line| line.contains("is under way")), "it is resumed: {rest:#?}");
    printed.extend(rest);
    for step in ["reserved", "charged", "packed", "handed over", "thanked"] {
        let times = printed.iter().filter(|line| line.contains(step) && line.contains("(process ")).count();
        assert_eq!(times, 1, "{step}: {printed:#?}");
    }
    assert!(printed.last().is_some_and(|line| line.contains("complete")), "{printed:#?}");
}
