//! The programs of the documents, run as a reader would run them.

use std::path::{Path, PathBuf};
use std::process::Command;

use reveille_testkit::TestDatabase;

/// Where cargo puts examples; built here when only this test was asked for.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its program");
    let profile = test.parent().and_then(Path::parent).expect("it lies below its target directory");
    let program = profile.join("examples").join(name);
    if !program.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--package", "reveille", "--features", "sqlx", "--example", name, "--target-dir"]);
        build.arg(profile.parent().expect("a profile lies in a target directory"));
        let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
        assert!(built.success(), "the example cannot be built");
    }
    program
}

fn output_of(name: &str, argument: impl AsRef<std::ffi::OsStr>) -> String {
    let ended = Command::new(program(name)).arg(argument).output().expect("the example starts");
    let output = String::from_utf8(ended.stdout).expect("it speaks UTF-8");
    assert!(ended.status.success(), "{name}: {output}{}", String::from_utf8_lossy(&ended.stderr));
    output
}

#[test]
fn the_example_of_a_fan_out_gives_both_teams_every_order_and_one_of_them_twice() {
    let dir = tempfile::Builder::new().prefix("rvl-fanout-").tempdir().expect("a directory can be made");
    let open = Command::new("chmod").arg("711").arg(dir.path()).status();
    assert!(open.is_ok_and(|status| status.success()));

    let output = output_of("ordered_fanout", dir.path());

    assert!(output.contains("the kitchen did 12 orders, the ledger 12"), "{output}");
    assert_eq!(output.matches("burnt, once more").count(), 1, "{output}");
}

/// As often as it takes to meet the moments at which a drain can find a claim.
#[tokio::test]
async fn the_first_program_of_the_documents_does_its_job_every_time_and_leaves_nothing_leased() {
    let db = TestDatabase::empty().await;

    for run in 1..=10 {
        let output = output_of("first_job", db.url());

        assert!(output.starts_with("the receipt for order 7 is sent, by job "), "{output}");
        let left =
            "select (select count(*) from reveille.job), (select count(*) from reveille.job_done where state = 'done')";
        let row = db.client().await.query_one(left, &[]).await.expect("counts");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, run));
    }
}

#[test]
fn the_documents_show_the_first_program_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = std::fs::read_to_string(root.join("../../examples/first_job.rs")).expect("it is there");
    let page = std::fs::read_to_string(root.join("../../docs/jobs.md")).expect("it is there");

    let (_, body) = program.split_once("//! ```\n\n").expect("it has a header");
    assert!(
        page.contains(&format!("```rust,no_run\n{body}```\n")),
        "docs/jobs.md shows another program than this:\n{body}"
    );
}

#[tokio::test]
async fn the_example_of_a_greeting_says_hello() {
    let db = TestDatabase::empty().await;

    let output = output_of("hello_jobs", db.url());

    assert!(output.starts_with("hello, world, from job "), "{output}");
}

#[tokio::test]
async fn the_example_of_retries_ends_with_a_job_that_was_brought_back() {
    let db = TestDatabase::empty().await;

    let output = output_of("retries_and_dead_letters", db.url());

    assert!(output.contains("the mail server does not answer") && output.contains("is dead"), "{output}");
    assert!(output.trim_end().lines().last().is_some_and(|last| last.contains("is done")), "{output}");
}

#[cfg(feature = "sqlx")]
#[tokio::test]
async fn the_example_of_an_order_and_its_receipt_has_both_or_neither() {
    let db = TestDatabase::empty().await;
    let host = db.url().split('\'').nth(1).expect("its socket is quoted").replace('/', "%2F");
    // A URL, because sqlx reads nothing else.
    let output = output_of("transactional_enqueue", format!("postgres://postgres@{host}/{}", db.name()));

    let paid = output.lines().filter(|line| line.contains("is paid, and job")).count();
    let receipts = output.lines().filter(|line| line.starts_with("receipt for order")).count();
    assert!(paid > 0 && paid == receipts && output.contains("was not paid"), "{output}");
}

/// Documentation tests compile them (`src/documents.rs`, and that of `reveille-duroxide`); what
/// needs a database is not run.
#[test]
fn every_program_in_the_documents_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &Path| std::fs::read_to_string(path).expect("it is there");
    let compiled = ["crates/reveille", "crates/duroxide"].map(|at| read(&root.join(at).join("src/documents.rs")));
    let pages = std::fs::read_dir(root.join("docs")).expect("it is there").map(|entry| entry.expect("it is").path());
    let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));

    for page in pages.chain([root.join("README.md")]) {
        let (text, name) = (read(&page), page.strip_prefix(&root).expect("it is ours").display().to_string());
        let is_listed = compiled.iter().any(|list| list.contains(&format!("/{name}\")")));
        assert_eq!(text.contains("```rust"), is_listed, "{name}: pages with Rust, and no others, are in documents.rs");
        let runs = text.lines().any(|line| line.starts_with("```rust") && line != "```rust,no_run");
        assert!(!runs, "{name}: a program would run without a database: begin it with ```rust,no_run");
    }
}
