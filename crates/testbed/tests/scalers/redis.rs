//! The scalers `redis`, `redis-cluster` and `redis-sentinel` and those of their streams against real servers.

use testbed::backends::{Redis, RedisCluster, RedisSetup};

use super::{assert_error_contains, certificates, read, scaler, spec, until};

#[tokio::test]
async fn entries_of_all_kinds_are_counted() {
    let server = Redis::start(&RedisSetup::default()).await.unwrap();
    let address = server.address();
    for words in [
        &["RPUSH", "list", "a", "b", "c"][..],
        &["SADD", "set", "a", "b"],
        &["ZADD", "zset", "1", "a"],
        &["HSET", "hash", "a", "1", "b", "2", "c", "3", "d", "4"],
        &["SET", "text", "x"],
        &["XADD", "stream", "*", "a", "1"],
    ] {
        server.command(words).await.unwrap();
    }
    let scaler_with =
        |key: &str| scaler("redis", &[("address", &address), ("listName", key), ("listLength", "7")], &[]);
    assert_eq!(spec(&scaler_with("my.list")).await, ("s0-redis-my-list".to_owned(), "7".to_owned()));
    assert_eq!(read(&scaler_with("list")).await, Ok(("3".into(), true)));
    assert_eq!(read(&scaler_with("set")).await, Ok(("2".into(), true)));
    assert_eq!(read(&scaler_with("zset")).await, Ok(("1".into(), true)));
    assert_eq!(read(&scaler_with("hash")).await, Ok(("4".into(), true)));
    assert_eq!(read(&scaler_with("missing")).await, Ok(("0".into(), false)));
    assert_error_contains(&read(&scaler_with("text")).await.unwrap_err(), &["text is a string", &address]);
    assert_error_contains(&read(&scaler_with("stream")).await.unwrap_err(), &["redis-streams"]);
    // Another database has other keys, and activation is strict.
    let other = scaler("redis", &[("address", &address), ("listName", "list"), ("databaseIndex", "3")], &[]);
    assert_eq!(read(&other).await, Ok(("0".into(), false)));
    let third =
        scaler("redis", &[("address", &address), ("listName", "list"), ("activationListLength", "3")], &[]);
    assert_eq!(read(&third).await, Ok(("3".into(), false)));
    let none = scaler("redis", &[("address", &address), ("listName", "list"), ("databaseIndex", "99")], &[]);
    assert_error_contains(&read(&none).await.unwrap_err(), &[&address]);
}

#[tokio::test]
async fn dead_server_is_an_error_and_restarted_server_is_queried() {
    let mut server = Redis::start(&RedisSetup::default()).await.unwrap();
    let address = server.address();
    server.command(&["RPUSH", "jobs", "a", "b"]).await.unwrap();
    let scaler = scaler("redis", &[("address", &address), ("listName", "jobs")], &[]);
    assert_eq!(read(&scaler).await, Ok(("2".into(), true)));
    server.stop();
    for _ in 0..3 {
        assert_error_contains(&read(&scaler).await.unwrap_err(), &["connection refused", &address]);
    }
    server.resume().await.unwrap();
    server.command(&["RPUSH", "jobs", "a"]).await.unwrap();
    until(&scaler, "1", true).await;
}

#[tokio::test]
async fn passwords_and_certificates_are_checked() {
    let (authority, identity) = certificates();
    let setup = RedisSetup { password: "hunter2", tls: Some(&identity), ..RedisSetup::default() };
    let server = Redis::start(&setup).await.unwrap();
    server.command(&["RPUSH", "jobs", "a"]).await.unwrap();
    let (plain, tls) = (server.address(), server.tls_address());
    let ca = ("ca", authority.certificate());
    let password = ("password", "hunter2");

    let scaler_with =
        |address: &str, metadata: super::ParameterPairs<'_>, auth: super::ParameterPairs<'_>| {
            scaler("redis", &[&[("address", address), ("listName", "jobs")], metadata].concat(), auth)
        };
    assert_eq!(read(&scaler_with(&plain, &[], &[password])).await, Ok(("1".into(), true)));
    assert_error_contains(&read(&scaler_with(&plain, &[], &[])).await.unwrap_err(), &["NOAUTH"]);
    assert_error_contains(
        &read(&scaler_with(&plain, &[], &[("password", "wrong")])).await.unwrap_err(),
        &["refused"],
    );
    let enabled = ("tls", "enable");
    assert_eq!(read(&scaler_with(&tls, &[], &[password, ca, enabled])).await, Ok(("1".into(), true)));
    assert_eq!(
        read(&scaler_with(&tls, &[("enableTLS", "true")], &[password, ca])).await,
        Ok(("1".into(), true))
    );
    let unsafe_ssl = [("enableTLS", "true"), ("unsafeSsl", "true")];
    assert_eq!(read(&scaler_with(&tls, &unsafe_ssl, &[password])).await, Ok(("1".into(), true)));
    assert_error_contains(
        &read(&scaler_with(&tls, &[("enableTLS", "true")], &[password])).await.unwrap_err(),
        &["certificate"],
    );
    assert!(read(&scaler_with(&plain, &[("enableTLS", "true")], &[password, ca])).await.is_err());
    assert!(read(&scaler_with(&tls, &[], &[password])).await.is_err());
    let key = [password, ca, enabled, ("cert", "no certificate"), ("key", "hunter2")];
    assert_error_contains(
        &read(&scaler_with(&tls, &[], &key)).await.unwrap_err(),
        &["certificate cannot be used"],
    );
}

#[tokio::test]
async fn streams_are_counted_by_length_pending_entries_or_lag() {
    let server = Redis::start(&RedisSetup::default()).await.unwrap();
    let address = server.address();
    for _ in 0..5 {
        server.command(&["XADD", "s", "*", "a", "1"]).await.unwrap();
    }
    server.command(&["XGROUP", "CREATE", "s", "g", "0"]).await.unwrap();
    server.command(&["XREADGROUP", "GROUP", "g", "me", "COUNT", "2", "STREAMS", "s", ">"]).await.unwrap();
    let scaler_with = |more: super::ParameterPairs<'_>| {
        scaler("redis-streams", &[&[("address", &*address), ("stream", "s")], more].concat(), &[])
    };
    let length = scaler_with(&[("streamLength", "9")]);
    assert_eq!(spec(&length).await, ("s0-redis-streams-s".to_owned(), "9".to_owned()));
    assert_eq!(read(&length).await, Ok(("5".into(), true)));
    assert_eq!(read(&scaler_with(&[("activationLagCount", "5")])).await, Ok(("5".into(), false)));
    assert_eq!(read(&scaler_with(&[("consumerGroup", "g")])).await, Ok(("2".into(), true)));
    assert_eq!(
        read(&scaler_with(&[("consumerGroup", "g"), ("lagCount", "4")])).await,
        Ok(("3".into(), true))
    );
    // The lag of a consumer group that does not exist is the length of the stream; a stream that does not exist is an error or zero.
    assert_eq!(
        read(&scaler_with(&[("consumerGroup", "new"), ("lagCount", "4")])).await,
        Ok(("5".into(), true))
    );
    assert_error_contains(&read(&scaler_with(&[("consumerGroup", "new")])).await.unwrap_err(), &["NOGROUP"]);
    let missing = |more: super::ParameterPairs<'_>| {
        scaler("redis-streams", &[&[("address", &*address), ("stream", "none")], more].concat(), &[])
    };
    assert_eq!(read(&missing(&[("consumerGroup", "g"), ("lagCount", "4")])).await, Ok(("0".into(), false)));
    assert_eq!(read(&missing(&[])).await, Ok(("0".into(), false)));
}

#[tokio::test]
async fn cluster_members_are_queried_for_their_keys() {
    let cluster = RedisCluster::start().await.unwrap();
    let addresses = cluster.addresses();
    for number in 1..=6 {
        let key = format!("jobs{number}");
        for _ in 0..number {
            cluster.command(&["RPUSH", &key, "a"]).await.unwrap();
        }
        let scaler = scaler("redis-cluster", &[("addresses", &addresses), ("listName", &key)], &[]);
        assert_eq!(read(&scaler).await, Ok((number.to_string(), true)));
    }
    cluster.command(&["XADD", "s", "*", "a", "1"]).await.unwrap();
    let stream = [("addresses", &*addresses), ("stream", "s"), ("consumerGroup", "g"), ("lagCount", "4")];
    assert_eq!(read(&scaler("redis-cluster-streams", &stream, &[])).await, Ok(("1".into(), true)));
    assert!(
        read(&scaler("redis-cluster", &[("addresses", "127.0.0.1:1"), ("listName", "l")], &[]))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn sentinel_resolves_the_master() {
    let mut master =
        Redis::start(&RedisSetup { password: "hunter2", ..RedisSetup::default() }).await.unwrap();
    let setup = RedisSetup { password: "hunter2", sentinel_of: Some(master.port()), ..RedisSetup::default() };
    let sentinel = Redis::start(&setup).await.unwrap();
    master.command(&["RPUSH", "jobs", "a", "b", "c"]).await.unwrap();
    let address = sentinel.address();
    let password = [("password", "hunter2")];
    let scaler_with = |name: &str| {
        let metadata = [("addresses", &*address), ("listName", "jobs"), ("sentinelMaster", name)];
        scaler("redis-sentinel", &metadata, &password)
    };
    assert_eq!(read(&scaler_with("main")).await, Ok(("3".into(), true)));
    assert_error_contains(&read(&scaler_with("other")).await.unwrap_err(), &["know no master"]);
    let main = scaler_with("main");
    master.stop();
    assert!(read(&main).await.is_err());
    master.resume().await.unwrap();
    master.command(&["RPUSH", "jobs", "a"]).await.unwrap();
    until(&main, "1", true).await;
}

#[tokio::test]
async fn new_entries_of_a_stream_wake() {
    let mut server = Redis::start(&RedisSetup::default()).await.unwrap();
    let address = server.address();
    let (sender, mut heard) = tokio::sync::mpsc::channel(1);
    let jobs = scaler("redis-streams", &[("address", &address), ("stream", "jobs")], &[]);
    let waking = tokio::spawn(jobs.wake(sender).unwrap());
    // The stream wakes once after each connection; the server restarts before the second one.
    for _ in 0..2 {
        assert_eq!(tokio::time::timeout(super::WAIT_TIMEOUT, heard.recv()).await.unwrap(), Some(()));
        // An entry that is added before the stream waits for it does not wake it, so several entries are added.
        let begun = std::time::Instant::now();
        loop {
            server.command(&["XADD", "jobs", "*", "a", "1"]).await.unwrap();
            if let Ok(woken) = tokio::time::timeout(std::time::Duration::from_secs(2), heard.recv()).await {
                assert_eq!(woken, Some(()));
                break;
            }
            assert!(begun.elapsed() < super::WAIT_TIMEOUT, "no entry wakes");
        }
        server.stop();
        server.resume().await.unwrap();
    }
    waking.abort();
}
