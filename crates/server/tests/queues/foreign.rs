//! Whose requests are answered: those of programs and of our own pages, never of foreign pages.

use std::fmt::Write as _;

use serde_json::json;

use crate::support::{Reply, TestServer};

/// The headers a browser sends for a page of another site; old browsers send only the first.
const EVIL: &str = "origin: https://evil.example\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n";
const JSON: &str = "content-type: application/json\r\n";

/// A request with these headers, and no others that a client would send.
async fn ask(server: &TestServer, line: &str, headers: &str, body: &str) -> Reply {
    let mut text = format!("{line} HTTP/1.1\r\nconnection: close\r\n{headers}");
    if !body.is_empty() {
        let _ = write!(text, "content-length: {}\r\n", body.len());
    }
    server.client().say(format!("{text}\r\n{body}")).await
}

async fn from_us(server: &TestServer, line: &str, headers: &str) -> Reply {
    ask(server, line, &format!("host: localhost\r\n{headers}"), "").await
}

#[tokio::test]
async fn a_page_of_another_origin_can_do_nothing() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let requests = [
        ("POST /api/v1/push", r#"{"items":[{"queue":"q","payload":2}]}"#),
        ("GET /api/v1/pop/queue/q?autoAck=true&batch=100", ""),
        ("POST /api/v1/system/maintenance/pop", r#"{"enabled":true}"#),
        ("POST /api/v1/configure", r#"{"queue":"q","options":{"retentionEnabled":true,"retentionSeconds":1}}"#),
        ("POST /api/v1/consumer-groups/__QUEUE_MODE__/queues/q/seek", r#"{"toEnd":true}"#),
        ("POST /api/v1/dlq/redrive", r#"{"all":true}"#),
        ("POST /api/v1/transaction", r#"{"operations":[{"type":"push","items":[{"queue":"q"}]}]}"#),
        ("DELETE /api/v1/resources/queues/q", ""),
        ("OPTIONS /api/v1/push", ""),
    ];
    let pages = [
        EVIL,
        "origin: https://evil.example\r\n",
        "origin: null\r\n",
        "origin: http://localhost:3000\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
        "sec-fetch-site: cross-site\r\nsec-fetch-dest: document\r\n",
    ];

    for (line, body) in requests {
        for page in pages {
            let reply = ask(&server, line, &format!("host: localhost\r\n{page}{JSON}"), body).await;
            assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_origin"), "{line} {page}: {}", reply.body);
        }
        let plain = ask(&server, line, &format!("host: localhost\r\n{EVIL}content-type: text/plain\r\n"), body).await;
        assert_eq!(plain.status, 403, "{line}: {}", plain.body);
    }

    assert_eq!(server.get("/api/v1/system/maintenance").await.json()["popMaintenanceMode"], false);
    assert_eq!(server.get("/api/v1/resources/queues/q").await.json()["options"]["retentionEnabled"], false);
    assert_eq!(server.get("/api/v1/pop/queue/q?batch=100").await.data(), [json!(1)]);
}

#[tokio::test]
async fn a_refusal_names_the_flag_that_would_allow_it() {
    let server = TestServer::new().await;

    let origin = from_us(&server, "GET /api/v1/status", "origin: https://app.example\r\n").await;
    let host = ask(&server, "GET /api/v1/status", "host: queue.example:80\r\n", "").await;

    assert!(origin.body.contains("--allowed-origin https://app.example"), "{}", origin.body);
    assert!(host.body.contains("--allowed-host queue.example"), "{}", host.body);
    assert_eq!((host.status, host.code().as_str()), (403, "foreign_host"));
}

#[tokio::test]
async fn a_name_that_was_bound_to_us_from_outside_is_refused() {
    let server = TestServer::new().await;
    server.push("q", "1").await;

    for host in [
        "rebind.evil.example",
        "rebind.evil.example:6632",
        "localhost.evil.example",
        "notlocalhost",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "[::1].evil.example",
        "[::1",
        ":6632",
        "",
    ] {
        for line in ["GET /api/v1/messages", "DELETE /api/v1/resources/queues/q", "GET /health"] {
            let same = format!("host: {host}\r\norigin: http://{host}\r\nsec-fetch-site: same-origin\r\n");
            let reply = ask(&server, line, &same, "").await;
            assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_host"), "{host}: {}", reply.body);
        }
    }

    assert_eq!(server.get("/api/v1/pop/queue/q").await.data(), [json!(1)]);
}

#[tokio::test]
async fn addresses_and_loopback_names_are_ours() {
    let server = TestServer::new().await;

    for host in [
        "127.0.0.1:6632",
        "127.0.0.1",
        "[::1]:6632",
        "[::1]",
        "10.1.2.3:80",
        "[fe80::1]",
        "localhost",
        "LocalHost:6632",
        "localhost.",
        "queue.localhost:6632",
    ] {
        let reply = ask(&server, "GET /api/v1/status", &format!("host: {host}\r\n"), "").await;
        assert_eq!(reply.status, 200, "{host}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_request_names_its_host_exactly_once() {
    let server = TestServer::new().await;

    let none = ask(&server, "GET /api/v1/status", "", "").await;
    let two = ask(&server, "GET /api/v1/status", "host: localhost\r\nhost: localhost\r\n", "").await;
    let old = server.client().say("GET /api/v1/status HTTP/1.0\r\n\r\n").await;
    let whole = "GET http://evil.example/api/v1/status";
    let named_whole = ask(&server, whole, "host: localhost\r\n", "").await;

    assert_eq!((none.status, none.code().as_str()), (400, "invalid_host"));
    assert_eq!((two.status, two.code().as_str()), (400, "invalid_host"));
    assert_eq!(old.status, 200, "HTTP/1.0 knows no Host: {}", old.body);
    assert_eq!((named_whole.status, named_whole.code().as_str()), (403, "foreign_host"));
}

#[tokio::test]
async fn probes_may_use_any_host() {
    let server = TestServer::new().await;

    for path in ["/livez", "/readyz", "/metrics", "/metrics/prometheus"] {
        for headers in ["host: pod-7.queue.internal:6632\r\n", "", "host: a\r\nhost: b\r\n"] {
            let reply = ask(&server, &format!("GET {path}"), headers, "").await;
            assert_eq!(reply.status, 200, "{path} {headers}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn a_link_leads_to_what_only_reads_and_nowhere_else() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let link = "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";
    let image = "sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: image\r\n";
    let reads = [
        "/health",
        "/livez",
        "/readyz",
        "/metrics",
        "/api/v1/status",
        "/api/v1/resources/queues",
        "/api/v1/resources/queues/q",
        "/api/v1/resources/namespaces",
        "/api/v1/consumer-groups",
        "/api/v1/dlq",
        "/api/v1/messages?queue=q",
        "/api/v1/traces/names",
        "/api/v1/system/maintenance",
    ];

    for path in reads {
        assert_eq!(from_us(&server, &format!("GET {path}"), link).await.status, 200, "{path}");
        assert_eq!(from_us(&server, &format!("GET {path}"), image).await.status, 403, "{path}");
    }
    for path in ["/api/v1/pop/queue/q?autoAck=true", "/api/v1/pop?namespace=", "/api/v1/pop/queue/q/partition/Default"]
    {
        assert_eq!(from_us(&server, &format!("GET {path}"), link).await.code(), "foreign_origin", "{path}");
    }
    let form = format!("host: localhost\r\n{link}content-type: application/x-www-form-urlencoded\r\n");
    let posted = ask(&server, "POST /api/v1/system/maintenance", &form, "enabled=true").await;
    assert_eq!(posted.code(), "foreign_origin");
    assert_eq!(server.get("/api/v1/pop/queue/q").await.data(), [json!(1)]);
}

#[tokio::test]
async fn programs_and_our_own_pages_are_served() {
    let server = TestServer::new().await;
    let node = "sec-fetch-mode: cors\r\nuser-agent: node\r\naccept-language: *\r\n";
    let typed = "sec-fetch-site: none\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";
    let own = "sec-fetch-site: same-origin\r\norigin: http://LOCALHOST\r\n";

    for headers in [node, typed, own, "user-agent: Mozilla/5.0 (X11) Chrome/150.0\r\n", ""] {
        let push = format!("host: localhost\r\n{headers}{JSON}");
        let pushed = ask(&server, "POST /api/v1/push", &push, r#"{"items":[{"queue":"q","payload":1}]}"#).await;
        let popped = from_us(&server, "GET /api/v1/pop/queue/q?autoAck=true", headers).await;
        assert_eq!((pushed.status, popped.data()), (201, vec![json!(1)]), "{headers}: {}", pushed.body);
    }
}

#[tokio::test]
async fn hosts_and_origins_that_were_allowed_pass() {
    let server = TestServer::with(|options| {
        options.allowed_hosts(["Queue.Example"]).allowed_origins(["https://app.example", "http://app.example:8080"])
    })
    .await;

    for host in ["queue.example", "queue.example:443"] {
        let own = format!("host: {host}\r\norigin: https://{host}\r\n");
        assert_eq!(ask(&server, "GET /api/v1/status", &own, "").await.status, 200, "{host}");
    }
    for origin in ["https://app.example", "http://app.example:8080"] {
        let page = format!("origin: {origin}\r\nsec-fetch-site: cross-site\r\n");
        assert_eq!(from_us(&server, "GET /api/v1/status", &page).await.status, 200, "{origin}");
    }
    for origin in ["http://app.example", "https://app.example:8080", "https://app.example.evil", "null"] {
        let page = format!("origin: {origin}\r\nsec-fetch-site: cross-site\r\n");
        assert_eq!(from_us(&server, "GET /api/v1/status", &page).await.status, 403, "{origin}");
    }
    assert_eq!(from_us(&server, "GET /api/v1/status", "sec-fetch-site: cross-site\r\n").await.status, 403, "no origin");
}

#[tokio::test]
async fn a_body_must_be_declared_as_json() {
    let server = TestServer::new().await;
    let body = r#"{"items":[{"queue":"q","payload":1}]}"#;
    let push =
        async |headers: &str| ask(&server, "POST /api/v1/push", &format!("host: localhost\r\n{headers}"), body).await;

    for simple in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx"]
    {
        let reply = push(&format!("content-type: {simple}\r\n")).await;
        assert_eq!((reply.status, reply.code().as_str()), (415, "not_json"), "{simple}: {}", reply.body);
        assert!(reply.body.contains("content-type: application/json"), "{}", reply.body);
    }
    assert_eq!(push("").await.status, 415, "no content-type");
    for json in ["application/json", "Application/JSON; charset=utf-8", "application/json;charset=utf-8"] {
        assert_eq!(push(&format!("content-type: {json}\r\n")).await.status, 201, "{json}");
    }
}

#[tokio::test]
async fn a_body_in_chunks_is_judged_by_what_came() {
    let server = TestServer::new().await;
    let chunked = "POST /api/v1/lease/00000000-0000-4000-8000-000000000000/extend HTTP/1.1\r\nhost: localhost\r\n\
                   connection: close\r\ntransfer-encoding: chunked\r\n\r\n";

    let some = server.client().say(format!("{chunked}2\r\n{{}}\r\n0\r\n\r\n")).await;
    let none = server.client().say(format!("{chunked}0\r\n\r\n")).await;
    let squeezed = chunked.replace("chunked", "gzip, chunked");
    let squeezed = server.client().say(format!("{squeezed}0\r\n\r\n")).await;

    assert_eq!((some.status, some.code().as_str()), (415, "not_json"));
    assert_eq!(none.status, 200, "{}", none.body);
    assert_eq!((squeezed.status, squeezed.code().as_str()), (501, "unknown_encoding"));
}
