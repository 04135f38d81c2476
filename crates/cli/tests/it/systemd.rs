//! `serve` as a unit of systemd: what it sends to `NOTIFY_SOCKET`, and the unit that we ship.

use std::process::Stdio;

use nix::sys::signal::Signal;
use reveille_testkit::TestDatabase;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

use crate::support::{Home, PATIENCE, Serving};

async fn received(socket: &UnixDatagram) -> String {
    let mut text = [0; 256];
    let length = timeout(PATIENCE, socket.recv(&mut text)).await.expect("a message arrives in time");
    let length = length.expect("a socket can be read");
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[tokio::test]
async fn systemd_learns_when_serve_serves_and_when_it_drains() {
    let (db, home) = (TestDatabase::new().await, Home::new());
    let path = home.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()]);
    command.env("NOTIFY_SOCKET", &path);

    let mut serving = Serving::start(command).await;

    assert_eq!(received(&socket).await, "READY=1\n");
    assert_eq!(serving.get("/readyz").await.0, 200);
    serving.signal_alone(Signal::SIGTERM);
    assert_eq!(received(&socket).await, "STOPPING=1\n");
    assert_eq!(serving.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_systemd_that_is_gone_does_not_end_serve() {
    let (db, home) = (TestDatabase::new().await, Home::new());
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()]);
    command.env("NOTIFY_SOCKET", home.path().join("nobody"));

    let serving = Serving::start(command).await;

    assert_eq!(serving.get("/readyz").await.0, 200);
    assert!(serving.log().contains("could not report to systemd"), "{}", serving.log());
}

/// A word that systemd does not know is ignored there, so a typing error would silently unlock the
/// door that the line was to lock.
#[test]
fn systemd_understands_every_line_of_the_unit() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/reveille.service");
    let home = Home::new();
    let text = std::fs::read_to_string(unit).unwrap().replace("/usr/local/bin/reveille", "/bin/true");
    let unit = home.file("reveille.service", &text);
    let mut verify = std::process::Command::new("systemd-analyze");

    let verified = verify.args(["verify", "--man=no", &unit]).stdin(Stdio::null()).output();

    let found = verified.as_ref().is_ok_and(|output| output.status.code().is_some());
    if !reveille_testkit::needs(found, "systemd-analyze") {
        return;
    }
    let said = String::from_utf8(verified.unwrap().stderr).unwrap();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("reveille.service")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}
