use super::query::{self, RedisCount};
use super::*;

fn trigger(metadata: &[(&str, &str)]) -> Trigger {
    let mut trigger = Trigger::default();
    trigger.metadata.extend(metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    trigger
}

fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn hosts_and_ports_follow_the_addresses() {
    let all = |addresses: &[&str], hosts: &[&str], ports: &[&str]| {
        query::addresses(&list(addresses), &list(hosts), &list(ports))
    };
    assert_eq!(all(&["a:1"], &["b", "::1"], &["2", "3"]).unwrap(), ["a:1", "b:2", "[::1]:3"]);
    assert!(
        all(&[], &["a", "b"], &["1"])
            .unwrap_err()
            .to_string()
            .starts_with("not enough hosts or ports given.")
    );
    for (addresses, hosts, ports) in
        [(&[][..], &["h"][..], &[][..]), (&[], &[], &["1"]), (&["", "a:1"], &[], &[])]
    {
        assert!(
            all(addresses, hosts, ports).unwrap_err().to_string().starts_with("no addresses or hosts given.")
        );
    }
}

#[test]
fn addresses_have_a_host_and_maybe_a_port() {
    assert_eq!(query::host_and_port("redis:7").unwrap(), ("redis".to_owned(), 7));
    assert_eq!(query::host_and_port("redis").unwrap(), ("redis".to_owned(), 6379));
    assert_eq!(query::host_and_port("[::1]:7").unwrap(), ("::1".to_owned(), 7));
    assert_eq!(query::host_and_port("::1").unwrap(), ("::1".to_owned(), 6379));
    for bad in ["", ":1", "a:b", "a:99999", "[::1", "a b:1", "redis://h:1"] {
        assert!(query::host_and_port(bad).is_err(), "{bad}");
    }
    let error = query::host_and_port("redis://:hunter2@h:1").unwrap_err().to_string();
    assert_eq!(error, "\"redis://h:1\" is no address: write host:port");
}

#[test]
fn key_type_selects_count_command() {
    let counts = |kind| query::counts("jobs", kind);
    assert_eq!(
        ["list", "none", "set", "zset", "hash"].map(|kind| counts(kind).unwrap()),
        ["LLEN", "LLEN", "SCARD", "ZCARD", "HLEN"]
    );
    assert_eq!(
        counts("string").unwrap_err().to_string(),
        "jobs is a string, whose entries cannot be counted"
    );
    assert_eq!(counts("stream").unwrap_err().to_string(), "jobs is a stream: use the trigger redis-streams");
}

#[test]
fn lag_needs_redis_7() {
    assert_eq!(query::knows_lag("# Server\r\nredis_version:7.0.15\r\nos:x\r\n"), Ok(()));
    assert_eq!(query::knows_lag("redis_version:10.1"), Ok(()));
    assert_eq!(
        query::knows_lag("redis_version:6.2.1\r\n").unwrap_err().to_string(),
        "redis version 7+ required for lag, this one is 6.2.1"
    );
    assert!(query::knows_lag("").is_err());
    assert!(query::knows_lag("redis_version:x.y").is_err());
}

#[test]
fn stream_parameters_select_the_count() {
    let requested = |more: &[(&str, &str)]| {
        let trigger = trigger(&[&[("address", "r:1"), ("stream", "s")], more].concat());
        let (_, requested) = StreamParameters::read(&trigger).unwrap().count_target(&trigger);
        (requested.request, requested.target)
    };
    let (stream, group) = ("s".to_owned(), "g".to_owned());
    assert_eq!(requested(&[("lagCount", "4")]), (RedisCount::Length { stream: stream.clone() }, 5));
    assert_eq!(
        requested(&[("consumerGroup", "g"), ("lagCount", "0"), ("pendingEntriesCount", "7")]),
        (RedisCount::Pending { stream: stream.clone(), group: group.clone() }, 7)
    );
    assert_eq!(
        requested(&[("consumerGroup", "g"), ("lagCount", "-2")]),
        (RedisCount::Lag { stream, group }, -2)
    );
}

#[test]
fn tls_in_two_places_is_an_error() {
    let tls = |enable: &str, tls: &str| {
        ConnectionParameters { enable_tls: enable.into(), tls: tls.into(), ..ConnectionParameters::default() }
            .uses_tls()
    };
    assert_eq!((tls("", ""), tls("true", ""), tls("", "enable")), (Ok(false), Ok(true), Ok(true)));
    assert!(tls("f", "disable").is_err() && tls("true", "enable").is_err());
    assert!(tls("maybe", "").is_err() && tls("", "maybe").is_err());
}

/// A server that answers each command with the next of these replies, in which `{port}` is its own; returns its address.
async fn server(replies: Vec<String>) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let replies: Vec<String> =
        replies.iter().map(|reply| reply.replace("{port}", &address.port().to_string())).collect();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let replies = replies.clone();
            tokio::spawn(async move {
                let mut command = [0; 4096];
                for reply in replies {
                    if stream.read(&mut command).await.is_ok_and(|read| read > 0) {
                        let _ = stream.write_all(reply.as_bytes()).await;
                    }
                }
                let _ = stream.read(&mut command).await;
            });
        }
    });
    address.to_string()
}

async fn read(type_: &str, metadata: &[(&str, &str)]) -> Result<String, String> {
    let reading = crate::test_support::read(&crate::test_support::trigger(type_, metadata)).await;
    let reading = reading.map_err(|error| error.message)?;
    Ok(reading.values.first().unwrap().value.to_string())
}

#[tokio::test]
async fn lengths_of_replies_are_bounded_before_they_are_read() {
    for (reply, error) in [
        ("$536870912\r\n", "more than 1024 KiB"),
        ("*100000000\r\n", "more than 100000 values"),
        (&*"*4096\r\n".repeat(100), "nested too deeply"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak the protocol of Redis"),
    ] {
        let address = server(vec![reply.to_owned()]).await;
        let found = read("redis", &[("address", &address), ("listName", "l")]).await.unwrap_err();
        assert!(found.contains(error) && found.contains(&address), "{found}");
    }
}

#[tokio::test]
async fn denied_access_is_known_by_its_code() {
    for reply in ["-NOAUTH Authentication required.\r\n", "-NOPERM this user has no permissions\r\n"] {
        let address = server(vec![reply.to_owned()]).await;
        let given = crate::test_support::trigger("redis", &[("address", &address), ("listName", "l")]);
        let refused = crate::test_support::read(&given).await.unwrap_err();
        assert_eq!(refused.cause(), Some(&crate::SourceRefusal::Credentials), "{refused}");
    }
}

#[tokio::test]
async fn password_that_the_server_does_not_require_is_ignored() {
    let refused = "-ERR AUTH <password> called without any password configured for the default user.\r\n";
    for (refused, expected) in [(refused, Some("3")), ("-WRONGPASS invalid password\r\n", None)] {
        let address = server([refused, "+list\r\n", ":3\r\n"].map(str::to_owned).to_vec()).await;
        let mut trigger = crate::test_support::trigger("redis", &[("address", &address), ("listName", "l")]);
        trigger.auth.insert("password".to_owned(), "hunter2".to_owned());
        let reading = crate::test_support::read(&trigger).await.ok();
        let value = reading.map(|reading| reading.values.first().unwrap().value.to_string());
        assert_eq!(value.as_deref(), expected);
    }
}

#[tokio::test]
async fn groups_report_their_lag() {
    let info = "$21\r\nredis_version:7.0.15\n\r\n";
    let group = |lag: &str| format!("*1\r\n*4\r\n$4\r\nname\r\n$1\r\ng\r\n$3\r\nlag\r\n{lag}");
    for (replies, expected) in [
        (vec![group(":12\r\n")], Ok("12")),
        (vec![group("$-1\r\n")], Err("does not know how far group g is behind")),
        (vec!["*0\r\n".to_owned(), ":5\r\n".to_owned()], Ok("5")),
        (vec!["-ERR no such key\r\n".to_owned()], Ok("0")),
        (vec![":7\r\n".to_owned()], Err("XINFO was answered with a value of another type")),
    ] {
        let address = server([vec![info.to_owned()], replies].concat()).await;
        let metadata = [("address", &*address), ("stream", "s"), ("consumerGroup", "g"), ("lagCount", "4")];
        match (read("redis-streams", &metadata).await, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test]
async fn servers_of_a_cluster_name_the_owner_of_a_key() {
    let owner = server(vec!["+list\r\n".to_owned(), ":3\r\n".to_owned()]).await;
    let moved = format!("-MOVED 3999 {owner}\r\n");
    let other = server(vec![moved.clone(), moved.clone(), moved]).await;
    let found = read("redis-cluster", &[("addresses", &other), ("listName", "l")]).await;
    assert_eq!(found.as_deref(), Ok("3"));
    // Redirections of a server to itself end.
    let itself = server(vec!["-MOVED 1 :{port}\r\n".to_owned(); 20]).await;
    let found = read("redis-cluster", &[("addresses", &itself), ("listName", "l")]).await.unwrap_err();
    assert!(found.contains("name each other"), "{found}");
}

#[tokio::test]
async fn sentinels_name_the_master() {
    let master = server(vec!["*1\r\n$6\r\nmaster\r\n".into(), "+list\r\n".into(), ":4\r\n".into()]).await;
    let (host, port) = master.split_once(':').unwrap();
    let named = format!("*2\r\n${}\r\n{host}\r\n${}\r\n{port}\r\n", host.len(), port.len());
    let sentinel = server(vec![named]).await;
    let metadata = [("addresses", &*sentinel), ("listName", "l"), ("sentinelMaster", "m")];
    assert_eq!(read("redis-sentinel", &metadata).await.as_deref(), Ok("4"));
    let unknown = server(vec!["*-1\r\n".into()]).await;
    let metadata = [("addresses", &*unknown), ("listName", "l"), ("sentinelMaster", "m")];
    assert!(read("redis-sentinel", &metadata).await.unwrap_err().contains("know no master"));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn new_entries_of_a_stream_wake_and_those_of_a_list_do_not() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // There is one connection only, because another one would wake too.
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let mut command = [0; 4096];
        for reply in ["*-1\r\n", "*1\r\n*2\r\n$1\r\ns\r\n*0\r\n"] {
            let read = stream.read(&mut command).await.unwrap();
            assert!(String::from_utf8_lossy(&command[..read]).contains("XREAD"));
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
        // The last command gets no answer.
        while stream.read(&mut command).await.is_ok_and(|read| read > 0) {}
    });
    let built = |type_: &str, key: &str| {
        let trigger = crate::test_support::trigger(type_, &[("address", &address), (key, "s")]);
        crate::test_support::build(&trigger).unwrap()
    };
    let (sender, mut wakes) = tokio::sync::mpsc::channel(1);
    assert!(built("redis", "listName").wake(sender.clone()).is_none());
    let waking = tokio::spawn(built("redis-streams", "stream").wake(sender).unwrap());
    // Once after the connection, and once after the entry.
    for _ in 0..2 {
        let woken = tokio::time::timeout(Duration::from_mins(1), wakes.recv()).await;
        assert_eq!(woken.unwrap(), Some(()));
    }
    waking.abort();
    serving.abort();
}
