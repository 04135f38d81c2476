//! `make install`: what a machine has afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::support::{Home, PROGRAM, finished};

#[tokio::test]
async fn make_install_installs_the_command_its_manual_and_completions() {
    let home = Home::new();
    let stage = home.path().join("stage");

    let ran = finished(make_install(&stage, "/opt/reveille")).await;

    ran.assert_code(0);
    let prefix = stage.join("opt/reveille");
    assert_eq!(fs::metadata(prefix.join("bin/reveille")).unwrap().permissions().mode() & 0o777, 0o755);
    for (path, word) in [
        ("share/man/man1/reveille.1", "REVEILLE_CONFIG"),
        ("share/man/man1/reveille-serve.1", "listen"),
        ("share/man/man1/reveille-jobs-redrive.1", "queue"),
        ("share/bash-completion/completions/reveille", "--database-url"),
        ("share/zsh/site-functions/_reveille", "#compdef reveille"),
        ("lib/systemd/system/reveille.service", "ExecStart=/opt/reveille/bin/reveille serve\n"),
        ("share/fish/vendor_completions.d/reveille.fish", "redrive"),
    ] {
        let path = prefix.join(path);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains(word), "{}: {text}", path.display());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644, "{}", path.display());
    }
}

#[tokio::test]
async fn bash_accepts_the_completions_and_completes_a_command() {
    let home = Home::new();
    let script = home.file("reveille.bash", &home.run(&["completions", "bash"]).await.stdout);
    let mut bash = Command::new("bash");
    bash.args(["-c", r#"source "$0"; COMP_WORDS=(reveille ser); COMP_CWORD=1; _reveille reveille ser reveille; echo "${COMPREPLY[*]}""#, &script]);
    bash.stdout(Stdio::piped()).stderr(Stdio::piped());

    let ran = finished(bash).await;

    assert_eq!((ran.stdout.trim(), ran.stderr.as_str()), ("serve", ""));
}

#[tokio::test]
async fn completions_and_manual_need_no_usable_configuration() {
    let home = Home::new();
    home.file(".config/reveille/config.toml", "nonsense = 1");

    home.run(&["completions", "zsh"]).await.assert_code(0);
    home.run(&["man", "pages"]).await.assert_code(0);

    assert!(home.path().join("pages/reveille-push.1").exists());
}

#[tokio::test]
async fn a_directory_for_the_manual_that_cannot_be_written_is_named() {
    let home = Home::new();
    let file = home.file("taken", "");

    let ran = home.run(&["man", &file]).await;

    ran.assert_code(1);
    assert!(ran.sentence().starts_with(&format!("cannot write manual pages into {file}: ")), "{ran:?}");
}

/// Installs the program under test: the build is what all other tests try.
fn make_install(stage: &Path, prefix: &str) -> Command {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "install", &format!("REVEILLE={PROGRAM}"), &format!("PREFIX={prefix}")]);
    make.arg(format!("DESTDIR={}", stage.display()));
    make.current_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."));
    make.stdout(Stdio::piped()).stderr(Stdio::piped());
    make
}
