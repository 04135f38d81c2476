//! A certificate authority of a test's own, made with openssl.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Certificates {
    dir: tempfile::TempDir,
    authority: &'static str,
}

/// A new key, quickly made.
const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

impl Certificates {
    /// An authority, and a server's certificate for `name`.
    pub(crate) fn for_server(name: &str) -> Self {
        let dir = directory();
        let path = |file: &str| dir.path().join(file).display().to_string();
        let (ca_key, ca, key, request, server) =
            (path("ca.key"), path("ca.crt"), path("server.key"), path("server.csr"), path("server.crt"));
        let extensions = path("extensions");
        std::fs::write(&extensions, format!("subjectAltName=DNS:{name}\n")).unwrap();
        openssl(
            dir.path(),
            &[&["req", "-x509"][..], &KEY, &["-days", "2", "-subj", "/CN=Test", "-keyout", &ca_key, "-out", &ca]]
                .concat(),
        );
        openssl(
            dir.path(),
            &[&["req"][..], &KEY, &["-subj", "/CN=server", "-keyout", &key, "-out", &request]].concat(),
        );
        openssl(
            dir.path(),
            &[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                &ca,
                "-CAkey",
                &ca_key,
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                &extensions,
                "-out",
                &server,
            ],
        );
        Self { dir, authority: "ca.crt" }
    }

    /// A server's certificate for `name` that is its own authority, as PostgreSQL's documentation
    /// makes them.
    pub(crate) fn of_their_own(name: &str) -> Self {
        let dir = directory();
        let (names, subject) = (format!("subjectAltName=DNS:{name}"), format!("/CN={name}"));
        let files = ["-keyout", "server.key", "-out", "server.crt"];
        let about = ["-days", "2", "-subj", &subject, "-addext", &names];
        openssl(dir.path(), &[&["req", "-x509"][..], &KEY, &about, &files].concat());
        Self { dir, authority: "server.crt" }
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.dir.path().join(self.authority)
    }

    /// What the server needs in its data directory.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        ["server.key", "server.crt"]
            .map(|name| (name.to_owned(), std::fs::read(self.dir.path().join(name)).unwrap()))
            .to_vec()
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("rvl-").tempdir_in("/tmp").unwrap()
}

fn openssl(dir: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).current_dir(dir).output().expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
