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
    let asked = |more: &[(&str, &str)]| {
        let trigger = trigger(&[&[("address", "r:1"), ("stream", "s")], more].concat());
        let (_, asked) = StreamParameters::read(&trigger).unwrap().count_target(&trigger);
        (asked.question, asked.target)
    };
    let (stream, group) = ("s".to_owned(), "g".to_owned());
    assert_eq!(asked(&[("lagCount", "4")]), (RedisCount::Length { stream: stream.clone() }, 5));
    assert_eq!(
        asked(&[("consumerGroup", "g"), ("lagCount", "0"), ("pendingEntriesCount", "7")]),
        (RedisCount::Pending { stream: stream.clone(), group: group.clone() }, 7)
    );
    assert_eq!(asked(&[("consumerGroup", "g"), ("lagCount", "-2")]), (RedisCount::Lag { stream, group }, -2));
}

#[test]
fn tls_in_two_places_is_an_error() {
    let tls = |enable: &str, tls: &str| {
        Connection { enable_tls: enable.into(), tls: tls.into(), ..Connection::default() }.uses_tls()
    };
    assert_eq!((tls("", ""), tls("true", ""), tls("", "enable")), (Ok(false), Ok(true), Ok(true)));
    assert_eq!((tls("f", "disable"), tls("false", "enable")), (Ok(false), Ok(true)));
    assert!(tls("true", "enable").is_err() && tls("maybe", "").is_err() && tls("", "maybe").is_err());
}
