//! Precedence, faults, and that the default file and the code know the same settings.

use clap::Parser;

use super::layers::Source;
use super::*;

type Variables<'a> = &'a [(&'a str, &'a str)];

fn gathered(typed: &str, variables: Variables<'_>) -> (Effective, Faults) {
    let args = Args::try_parse_from(typed.split_whitespace()).unwrap();
    let mut faults = Faults::default();
    let environment = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| OsString::from(value))
    };
    let effective = Effective::gather(&args, environment, &mut faults);
    (effective, faults)
}

fn faults_of(typed: &str, variables: Variables<'_>) -> Vec<String> {
    let (effective, mut faults) = gathered(typed, variables);
    let config = Config::read(&mut Reader::new(&effective, &mut faults));
    config.check(&mut faults);
    faults.sentences().to_vec()
}

#[test]
fn the_defaults_have_no_fault_and_every_one_of_them_is_used() {
    let (effective, mut faults) = gathered("reveille doctor", &[]);
    let mut reader = Reader::new(&effective, &mut faults);

    let config = Config::read(&mut reader);

    let read = std::mem::take(&mut reader.read_keys);
    let unused: Vec<&str> =
        effective.settings.iter().map(|s| s.key.as_str()).filter(|key| !read.iter().any(|r| r == key)).collect();
    assert_eq!(unused, [""; 0]);
    let unlisted: Vec<&String> = read.iter().filter(|key| effective.get(key).is_none()).collect();
    assert_eq!(unlisted, [""; 0]);
    config.check(&mut faults);
    assert_eq!(faults.sentences(), [""; 0]);
    assert_eq!(config.database.url, None);
}

/// The default file has the defaults of the libraries.
#[test]
fn the_defaults_are_those_of_the_libraries() {
    let (effective, mut faults) = gathered("reveille doctor", &[]);
    let config = Config::read(&mut Reader::new(&effective, &mut faults));

    assert_eq!(format!("{:?}", config.server), format!("{:?}", ServerOptions::default()));
    assert_eq!(format!("{:?}", config.messages), format!("{:?}", MessagesOptions::default()));
    assert_eq!(format!("{:?}", config.jobs), format!("{:?}", JobsOptions::default()));
    let url = "host=/tmp user=me";
    assert_eq!(format!("{:?}", config.database.options(url)), format!("{:?}", DatabaseOptions::new(url)));
}

#[test]
fn a_flag_beats_a_variable_and_ours_beats_the_common_one() {
    let variables = [("DATABASE_URL", "host=b user=x"), ("REVEILLE_LOG_LEVEL", "warn")];
    let (common, _) = gathered("reveille doctor --log-level debug", &variables);
    let both = [("DATABASE_URL", "host=b user=x"), ("REVEILLE_DATABASE_URL", "host=c user=x")];
    let (ours, _) = gathered("reveille doctor", &both);

    let url = common.get("database.url").unwrap();
    assert_eq!((url.text.as_str(), &url.source), ("host=b user=x", &Source::Environment("DATABASE_URL".to_owned())));
    let level = common.get("log.level").unwrap();
    assert_eq!((level.text.as_str(), &level.source), ("debug", &Source::Flag("--log-level")));
    assert_eq!(ours.get("database.url").unwrap().text, "host=c user=x");
}

#[test]
fn every_fault_is_found_and_no_password_is_shown() {
    let variables = [
        ("REVEILLE_HTTP_LISTEN", "somewhere"),
        ("REVEILLE_HTTP_HEAD_TIMEOUT", "12"),
        ("REVEILLE_HTTP_MAX_BODY", "huge"),
        ("REVEILLE_DATABASE_POOL_SIZE", "0"),
        ("REVEILLE_DATABASE_URL", "postgres://me:hush@db/shop?sslmode=maybe"),
        ("REVEILLE_DATABASE_MIGRATE", "perhaps"),
    ];

    let faults = faults_of("reveille serve --log-format xml --log-level loud", &variables);

    assert_eq!(faults.len(), 8, "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("http.listen = \"somewhere\" is no address")), "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("environment REVEILLE_HTTP_HEAD_TIMEOUT")), "{faults:#?}");
    assert!(!faults.join(" ").contains("hush"), "{faults:#?}");
}

#[test]
fn an_empty_url_as_a_flag_means_the_private_database() {
    let args = ["reveille", "doctor", "--database-url", ""];
    let args = Args::try_parse_from(args).unwrap();
    let mut faults = Faults::default();
    let effective = Effective::gather(&args, |_| Some("host=db user=me".into()), &mut faults);

    assert_eq!(Reader::new(&effective, &mut faults).some_text("database.url"), None);
}

#[test]
fn a_misspelt_variable_is_reported_and_others_are_left_alone() {
    let (effective, _) = gathered("reveille doctor", &[]);
    let names = ["REVEILLE_HTTP_LISTN", "REVEILLE_SERVICE_HOST", "REVEILLE_CONFIG", "REVEILLE_LOG_LEVEL"];

    let slips = effective.slips(&names.map(str::to_owned));

    assert_eq!(slips, [("REVEILLE_HTTP_LISTN".to_owned(), "REVEILLE_HTTP_LISTEN".to_owned())]);
}

#[test]
fn names_of_queen_are_understood_and_ours_are_stronger() {
    let variables = [
        ("MAX_INTENTIONS", "123"),
        ("DEFAULT_TIMEOUT", "1500"),
        ("DEFAULT_BATCH_SIZE", "7"),
        ("DEFAULT_SUBSCRIPTION_MODE", "new"),
        ("RETENTION_INTERVAL", "2000"),
        ("POLL_INTERVAL_MS", "80"),
        ("POP_WAIT_BASE_INTERVAL_MS", "10"),
        ("POP_WAIT_MAX_INTERVAL_MS", "2000"),
        ("POP_WAIT_BACKOFF_THRESHOLD", "5"),
        ("POP_WAIT_BACKOFF_MULTIPLIER", "1.5"),
        ("REVEILLE_HTTP_POP_BATCH", "9"),
    ];
    let (effective, mut faults) = gathered("reveille serve", &variables);

    let config = Config::read(&mut Reader::new(&effective, &mut faults));

    assert_eq!(faults.sentences(), [""; 0]);
    let expected = ServerOptions::default().max_waiters(123).pop_timeout(Duration::from_millis(1500)).pop_batch(9);
    assert_eq!(format!("{:?}", config.server), format!("{:?}", expected.subscription(Subscription::New)));
    let messages = format!("{:?}", config.messages);
    for part in ["upkeep_interval: 2s", "shortest: 80ms", "base: 10ms", "cap: 2s", "threshold: 5", "multiplier: 1.5"] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
}

/// Zero between two rounds would be a loop without a pause while the LISTEN connection is down.
#[test]
fn an_interval_of_zero_is_refused() {
    for (variable, key) in [
        ("POLL_INTERVAL_MS", "messages.watch_interval"),
        ("REVEILLE_MESSAGES_WATCH_INTERVAL", "messages.watch_interval"),
        ("REVEILLE_FALLBACK_INTERVAL_S", "jobs.fallback_interval"),
    ] {
        let faults =
            faults_of("reveille serve", &[(variable, if variable.ends_with("INTERVAL") { "0s" } else { "0" })]);

        assert_eq!(faults.len(), 1, "{variable}: {faults:#?}");
        assert!(faults[0].contains(key) && faults[0].contains("must be more than 0"), "{faults:#?}");
    }
}

#[test]
fn the_switches_of_jobs_have_the_names_that_the_library_reads() {
    let variables = [("REVEILLE_NOTIFY", "off"), ("REVEILLE_FALLBACK_INTERVAL_S", "0.5")];
    let (effective, mut faults) = gathered("reveille serve", &variables);

    let config = Config::read(&mut Reader::new(&effective, &mut faults));

    assert_eq!(faults.sentences(), [""; 0]);
    let read = JobsOptions::from_environment(|name| {
        variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
    });
    assert_eq!(format!("{:?}", config.jobs), format!("{:?}", read.unwrap()));
}

#[test]
fn this_machine_is_understood_by_its_name_and_without_one() {
    for typed in ["localhost:6800", ":6800", "127.0.0.1:6800"] {
        let (effective, mut faults) = gathered(&format!("reveille serve --listen {typed}"), &[]);

        let address = Reader::new(&effective, &mut faults).address("http.listen");

        assert_eq!((address.to_string().as_str(), faults.sentences()), ("127.0.0.1:6800", &[][..]), "{typed}");
    }
}

#[test]
fn an_invalid_key_is_reported_without_the_key() {
    let faults = faults_of("reveille serve", &[("QUEEN_ENCRYPTION_KEY", "hush")]);

    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].contains("QUEEN_ENCRYPTION_KEY") && !faults[0].contains("hush"), "{faults:#?}");
}

#[test]
fn a_listen_url_without_a_database_url_is_a_fault() {
    let faults = faults_of("reveille serve", &[("REVEILLE_LISTEN_URL", "host=db user=me")]);

    assert_eq!(faults, ["database.listen_url is set and database.url is not; set both or none"]);
}
