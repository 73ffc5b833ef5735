use api::keda::KedaProfile;

use super::*;
use crate::table;
use crate::test_support::{ServerAction, build, read, server, texts, trigger};
use crate::web::HttpSettings;

const JOBS: &str = r#"{"count": 5, "value": [
    {"requestId": 1, "demands": ["maven", "Agent.Version -gtVersion 2.182.1"]},
    {"requestId": 2, "demands": ["maven", "docker"], "matchedAgents": [{"id": 1, "name": "template"}]},
    {"requestId": 3, "receiveTime": "2026-11-17T12:00:00Z", "demands": []},
    {"requestId": 4, "receiveTime": "2026-11-17T12:00:00Z", "result": "succeeded", "demands": ["maven"]},
    {"requestId": 5}
]}"#;

fn count(changed: &[(&str, &str)], in_flight: bool) -> i64 {
    let mut given = trigger("azure-pipelines", &[("organizationURL", "http://h/org"), ("poolName", "p")]);
    given.metadata.extend(texts(changed));
    let parameters = Parameters::read(&given).unwrap();
    let response = DevOpsResponse { url: "http://h", status: 200, body: JOBS.as_bytes() };
    query::waiting(&parameters, in_flight, response).unwrap()
}

#[test]
fn unfinished_jobs_count() {
    assert_eq!((count(&[], false), count(&[], true)), (3, 4));
    assert_eq!(count(&[("parent", "template")], true), 1);
}

#[test]
fn some_parameters_exclude_each_other() {
    let refused = |changed: &[(&str, &str)]| {
        let mut given = trigger("azure-pipelines", &[("organizationURL", "org"), ("poolName", "p")]);
        given.metadata.extend(texts(changed));
        given.auth = texts(&[("personalAccessToken", "t")]);
        let error = build(&given).err().map(|error| error.message).unwrap_or_default();
        error.replace("error parsing azure Pipelines metadata: ", "")
    };
    assert_eq!(refused(&[]), "");
    let both = [("jobsToFetch", "x"), ("fetchUnfinishedJobsOnly", "false")];
    let why = "cannot specify both jobsToFetch and fetchUnfinishedJobsOnly at the same time";
    assert_eq!(refused(&both), why);
    let name =
        "error parsing azure pipeline metadata: failed to extract organization name from organizationURL";
    assert_eq!(refused(&[("organizationURL", "http://h/")]), name);
}

/// They are compared with those of every job.
#[test]
fn long_demands_are_refused() {
    let read = |bytes: usize| {
        let demands = "a,".repeat(bytes / 2);
        Parameters::read(&trigger(
            "azure-pipelines",
            &[("organizationURL", "http://h/org"), ("poolName", "p"), ("demands", &demands)],
        ))
    };
    assert!(read(16 << 10).is_ok());
    let error = read((16 << 10) + 2).err().unwrap().message;
    assert!(error.ends_with(": demands has more than 16384 bytes"), "{error}");
}

#[test]
fn errors_do_not_quote_the_response() {
    let refused = DevOpsResponse { url: "http://h/org", status: 404, body: b"internal page" };
    let error = query::check_pool(7, refused).unwrap_err().message;
    assert!(
        error.starts_with("agent pool with id `7` not found: the Azure DevOps REST API returned"),
        "{error}"
    );
    assert!(!error.contains("internal"), "{error}");
}

#[test]
fn demands_are_compared() {
    let demands = |more: &[(&str, &str)]| {
        let mut all = vec![("demands", "maven, docker")];
        all.extend(more);
        count(&all, true)
    };
    // Jobs whose demands are all among ours.
    assert_eq!(demands(&[]), 4);
    assert_eq!(count(&[("demands", "maven")], true), 3);
    // Jobs with exactly ours.
    assert_eq!(demands(&[("requireAllDemands", "true")]), 1);
    // Jobs with all of ours.
    let others = ("requireAllDemandsAndIgnoreOthers", "true");
    assert_eq!(count(&[("demands", "maven"), others], true), 2);
    assert_eq!(count(&[("demands", "MAVEN"), others], true), 0);
    // Exactly ours if both are set.
    assert_eq!(demands(&[("requireAllDemands", "true"), others]), 1);
    assert_eq!(count(&[("demands", "MAVEN"), others, ("caseInsensitiveDemandsProcessing", "true")], true), 2);
    // Repeated and empty ones change nothing.
    assert_eq!(demands(&[("demands", "maven,,docker, maven"), ("requireAllDemands", "true")]), 1);
}

#[tokio::test]
async fn pool_is_found_and_jobs_are_counted() {
    let address = server(|request| {
        let line = request.lines().next().unwrap_or_default();
        assert!(request.to_lowercase().contains("authorization: basic onbhda=="), "{request}");
        ServerAction::Answer(
            200,
            match line {
                "GET /org/_apis/distributedtask/pools?poolName=a+b HTTP/1.1" => {
                    r#"{"count": 1, "value": [{"id": 7, "name": "a b"}]}"#.to_owned()
                }
                "GET /org/_apis/distributedtask/pools/7/jobrequests?$top=250 HTTP/1.1" => JOBS.to_owned(),
                other => panic!("{other}"),
            },
        )
    })
    .await;
    let url = format!("{address}/org");
    let mut given = trigger("azure-pipelines", &[("organizationURL", &url), ("poolName", "a b")]);
    given.auth = texts(&[("personalAccessToken", "pat")]);
    let specs = build(&given).unwrap().specs().await.unwrap();
    assert_eq!(specs.first().unwrap().external.as_ref().unwrap().metric.name, "s0-azure-pipelines-7");
    assert_eq!(read(&given).await.unwrap(), Reading::one("m", whole(3), true));
    let newer = Trigger { profile: KedaProfile::V2_21, ..given };
    assert_eq!(read(&newer).await.unwrap(), Reading::one("m", whole(4), true));
}

#[tokio::test]
async fn missing_pool_is_an_error() {
    let address = server(|_| ServerAction::Answer(200, r#"{"count": 0, "value": []}"#.to_owned())).await;
    let url = format!("{address}/org");
    let mut given = trigger("azure-pipelines", &[("organizationURL", &url), ("poolName", "p")]);
    given.auth = texts(&[("personalAccessToken", "pat")]);
    let error = build(&given).unwrap().specs().await.unwrap_err();
    assert_eq!(error.message, format!("{PREFIX}: agent pool with name `p` not found"));
}

#[test]
fn pools_of_a_name_are_those_in_the_list() {
    let found = |status, body: &str| {
        let response = DevOpsResponse { url: "http://h/org", status, body: body.as_bytes() };
        query::id_of_pool("p", response).map_err(|error| error.message)
    };
    assert_eq!(found(200, r#"{"value": [{"id": 7}]}"#), Ok(7));
    assert_eq!(found(201, r#"{"count": 3, "value": [{"id": 7}]}"#), Ok(7));
    for none in ["{}", "null", r#"{"value": null}"#, r#"{"count": 1, "value": []}"#] {
        assert_eq!(found(200, none), Err("agent pool with name `p` not found".to_owned()), "{none}");
    }
    let two = r#"{"count": 1, "value": [{"id": 7}, {"id": 8}]}"#;
    assert_eq!(found(200, two), Err("found 2 agent pool with name `p`".to_owned()));
    let moved = found(302, r#"{"value": [{"id": 7}]}"#).unwrap_err();
    assert!(moved.starts_with("the Azure DevOps REST API returned error"), "{moved}");
}

#[tokio::test]
async fn token_of_a_missing_variable_is_empty_with_compat_strict() {
    let address = server(|request| {
        assert!(request.to_lowercase().contains("authorization: basic og==\r\n"), "{request}");
        ServerAction::Answer(200, r#"{"value": [{"id": 7}]}"#.to_owned())
    })
    .await;
    let url = format!("{address}/org");
    let metadata = [("organizationURL", &*url), ("poolName", "p"), ("personalAccessTokenFromEnv", "GONE")];
    let given = trigger("azure-pipelines", &metadata);
    let error = build(&given).err().map(|error| error.message);
    let why = format!("{PREFIX}: no personalAccessToken given or PodIdentity provider configured");
    assert_eq!(error, Some(why));
    let strict = Backends::without_cluster(HttpSettings::allowing_loopback(), Compat::Strict);
    let specs = table::build(&given, &strict).unwrap().specs().await.unwrap();
    assert_eq!(specs.first().unwrap().external.as_ref().unwrap().metric.name, "s0-azure-pipelines-7");
}

#[test]
fn service_principals_are_checked() {
    let error = |auth: &[(&str, &str)]| {
        let mut given = Trigger { profile: KedaProfile::V2_21, ..trigger("azure-pipelines", &[]) };
        given.auth = texts(auth);
        principal::check(&given).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(error(&[]), "azure service principal tenantId is required");
    let id = [("azureServicePrincipalTenantId", "t"), ("azureServicePrincipalClientId", "c")];
    let with = |more: &[(&str, &str)]| error(&[&id[..], more].concat());
    assert!(with(&[]).ends_with("requires either clientSecret or clientCertificate"));
    assert!(with(&[("azureServicePrincipalClientSecret", "")]).contains("resolved to an empty value"));
    assert_eq!(with(&[("azureServicePrincipalClientSecret", "s")]), "");
}
