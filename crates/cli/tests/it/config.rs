//! The layers of the configuration, and their faults.

use serde_json::Value;

use crate::support::{Home, finished};

fn setting<'a>(shown: &'a Value, key: &str) -> &'a Value {
    let settings = shown["settings"].as_array().expect("settings are a list");
    settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}"))
}

#[track_caller]
fn assert_shown(shown: &Value, key: &str, (value, source, from): (&str, &str, Option<&str>)) {
    let setting = setting(shown, key);
    let found = (&setting["value"], &setting["source"], setting["from"].as_str());
    assert_eq!(found, (&Value::from(value), &Value::from(source), from), "{key}");
}

#[tokio::test]
async fn each_layer_beats_the_one_before() {
    let home = Home::new();
    let file = home
        .file("x.toml", "[log]\nlevel = \"warn\"\nformat = \"json\"\n[database]\nschema = \"filed\"\npool_size = 7\n");
    let mut command = home.command(&["config", "show", "--json", "--config", &file, "--log-level", "debug"]);
    command.env("REVEILLE_LOG_LEVEL", "error").env("REVEILLE_DATABASE_SCHEMA", "environed");

    let ran = finished(command).await;

    ran.assert_code(0);
    let shown = ran.json();
    assert_eq!(shown["file"], file.as_str());
    assert_shown(&shown, "http.listen", ("127.0.0.1:6632", "default", None));
    assert_shown(&shown, "database.pool_size", ("7", "file", Some(&file)));
    assert_shown(&shown, "database.schema", ("environed", "environment", Some("REVEILLE_DATABASE_SCHEMA")));
    assert_shown(&shown, "log.level", ("debug", "flag", Some("--log-level")));
    assert_shown(&shown, "log.format", ("json", "file", Some(&file)));
}

#[tokio::test]
async fn the_file_is_found_in_the_users_directory_and_not_in_the_working_directory() {
    let home = Home::new();
    home.file("reveille.toml", "[database]\npool_size = 9\n");
    home.file("config.toml", "[database]\npool_size = 9\n");
    assert_shown(&home.run(&["config", "show", "--json"]).await.json(), "database.pool_size", ("4", "default", None));

    let place = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
    let file = home.file(&format!("{place}/reveille/config.toml"), "[database]\npool_size = 8\n");
    let own = home.run(&["config", "show", "--json"]).await.json();
    let named = home.file("named.toml", "[database]\npool_size = 6\n");
    let mut command = home.command(&["config", "show", "--json"]);
    command.env("REVEILLE_CONFIG", &named);
    let by_variable = finished(command).await.json();

    assert_shown(&own, "database.pool_size", ("8", "file", Some(&file)));
    assert_shown(&by_variable, "database.pool_size", ("6", "file", Some(&named)));
}

#[tokio::test]
async fn our_own_variable_beats_database_url_and_no_password_is_shown() {
    let home = Home::new();
    let mut command = home.command(&["config", "show", "--json"]);
    command.env("DATABASE_URL", "postgres://me:hush@common/shop");
    let common = finished(command).await;
    let mut command = home.command(&["config", "show"]);
    command.env("DATABASE_URL", "postgres://me:hush@common/shop");
    command.env("REVEILLE_DATABASE_URL", "host=ours user=me password='hu sh'");
    command.env("REVEILLE_LISTEN_URL", "postgres://me:hush@ours/shop?password=hush");
    let ours = finished(command).await;

    let from = ("postgres://me:***@common/shop", "environment", Some("DATABASE_URL"));
    assert_shown(&common.json(), "database.url", from);
    assert!(ours.stdout.contains("host=ours user=me password=***"), "{ours:?}");
    assert!(ours.stdout.contains("environment REVEILLE_DATABASE_URL"), "{ours:?}");
    assert!(ours.stdout.contains("environment REVEILLE_LISTEN_URL"), "{ours:?}");
    assert!(!format!("{ours:?}{common:?}").contains("hush"), "{ours:?}");
    assert!(!format!("{ours:?}").contains("hu sh"), "{ours:?}");
}

#[tokio::test]
async fn every_fault_of_a_file_is_reported_at_once() {
    let home = Home::new();
    let text = "top = 1\n[http]\nlistn = \"127.0.0.1:1\"\nhead_timeout = 12\nmax_connections = \"many\"\n\
        [databse]\nurl = \"x\"\n[log]\nformat = \"xml\"\nlevel = [1]\n[frob]\nnicate = 1\n";
    let file = home.file("bad.toml", text);

    let ran = home.run(&["serve", "--config", &file]).await;

    ran.assert_code(2);
    let faults = ran.sentences().join("\n");
    assert_eq!(ran.sentences().len(), 8, "{faults}");
    let expected = [
        format!("there is no setting http.listn ({file}); did you mean http.listen?"),
        format!("there is no setting databse.url ({file}); did you mean database.url?"),
        format!("there is no setting frob.nicate ({file}); `reveille config default` lists all of them"),
        format!("http.head_timeout = \"12\" has no unit, write 12s or 12ms (file {file})"),
        format!("log.format = \"xml\" is none of text, json (file {file})"),
        format!("log.level in {file} must be a text, a number, true or false"),
    ];
    for sentence in expected {
        assert!(faults.contains(&sentence), "{sentence}\n---\n{faults}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_toml_or_not_there_is_named() {
    let home = Home::new();
    let broken = home.file("broken.toml", "[http]\nlisten = \n");

    let not_toml = home.run(&["doctor", "--config", &broken]).await;
    let missing = home.run(&["doctor", "--config", "/nonexistent/reveille.toml"]).await;

    not_toml.assert_code(2);
    assert!(not_toml.sentence().starts_with(&format!("{broken} is not TOML, line 2: ")), "{not_toml:?}");
    missing.assert_code(2);
    let expected = "cannot read the configuration file /nonexistent/reveille.toml: ";
    assert!(missing.sentence().starts_with(expected), "{missing:?}");
}

#[tokio::test]
async fn the_printed_defaults_can_be_read_back_and_change_nothing() {
    let home = Home::new();
    let plain = home.run(&["config", "show", "--json"]).await.json();
    let defaults = home.run(&["config", "default"]).await;
    let file = home.file("default.toml", &defaults.stdout);

    let read_back = home.run(&["config", "show", "--json", "--config", &file]).await;

    read_back.assert_code(0);
    let values = |shown: &Value| {
        let settings = shown["settings"].as_array().unwrap().clone();
        settings.into_iter().map(|setting| setting["value"].clone()).collect::<Vec<_>>()
    };
    // The data directory comes from the environment in both.
    assert_eq!(values(&read_back.json()), values(&plain));
}
