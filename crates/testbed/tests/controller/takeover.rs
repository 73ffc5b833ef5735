//! The history after a takeover: two controllers as processes, and the one that leads is killed while load moves.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use testbed::direct::{Caller, Direct};
use testbed::harness::Failure;
use testbed::program::{Program, Room};

use crate::env::{ControllerEnv, PERIOD, on_both, queue};
use crate::shared;
use crate::shared::program::{free_port, program};

/// How often the load changes before the kill.
const LOADS: u64 = 6;
/// Passes with each load.
const PASSES_PER_LOAD: usize = 3;
/// Time limit to become ready on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_mins(3);
const ACCOUNT: &str = "takeover";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A controller as a process.
struct Replica {
    program: Program,
    /// Its server, as its own account reads it.
    server: Direct,
    /// Its decision log.
    log: PathBuf,
}

impl Replica {
    async fn start(env: &ControllerEnv, token: &str) -> Self {
        let room = Room::new().unwrap();
        let token_file = room.write("token", token).unwrap();
        let mut config = serde_json::to_value(Kubeconfig::from_yaml(&env.kubeconfig).unwrap()).unwrap();
        for user in config["users"].as_array_mut().unwrap() {
            user["user"] = json!({"tokenFile": token_file});
        }
        let kubeconfig = room.write("kubeconfig", &config.to_string()).unwrap();
        let (port, log) = (free_port(), room.path("decisions.log"));
        let arguments = [
            "controller".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespaces={}", env.namespace),
            format!("--leader-elect-resource-namespace={}", env.namespace),
            // Long enough for a busy machine, on which a leader renews late.
            "--leader-elect-lease-duration=10s".to_owned(),
            "--leader-elect-renew-deadline=8s".to_owned(),
            "--leader-elect-retry-period=1s".to_owned(),
            format!("--horizontal-pod-autoscaler-sync-period={}ms", PERIOD.as_millis()),
            "--horizontal-pod-autoscaler-downscale-stabilization=0s".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--enable-cert-rotation".to_owned(),
            format!("--cert-secret-name={}", env.namespace),
            format!("--decision-log={}", log.display()),
            "--decision-log-all".to_owned(),
        ];
        let variables = [("POD_IP", "127.0.0.1")];
        let mut program = Program::start_with("plimsoll", program(), &arguments, &variables, room).unwrap();
        let server = Direct::new(port, &Caller::token(token)).unwrap();
        let ready = async || server.get("/readyz").await.is_ok_and(|answer| answer.code == 200);
        program.until(READY_TIMEOUT, ready).await.unwrap();
        Self { program, server, log }
    }

    /// What `plimsoll why --at` reads of this replica.
    async fn decision_at(&self, namespace: &str, at: Timestamp) -> Value {
        let group = api::decisions::API_VERSION;
        let path = format!("/apis/{group}/namespaces/{namespace}/decisions/hpa.web?at={at}");
        match self.server.get(&path).await {
            Ok(answer) if answer.code == 200 => answer.json()["items"][0].clone(),
            Ok(answer) => answer.json(),
            Err(error) => json!(error.to_string()),
        }
    }

    /// Kills the process with SIGKILL and waits for its end.
    async fn kill(&mut self, env: &ControllerEnv) {
        let pid = self.program.pid().unwrap().to_string();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        env.until("the end of the leader", async || self.program.ended().map(drop).ok_or(())).await;
    }
}

/// The decisions in a decision log; the last line of a killed process may be cut.
fn logged(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn time(pass: &Value) -> Timestamp {
    pass["decision"]["at"].as_str().unwrap().parse().unwrap()
}

/// What was decided, without the run of equal decisions that it is shown in.
fn decided(pass: &Value) -> [&Value; 4] {
    ["decision", "spec", "mode", "period"].map(|field| &pass[field])
}

/// A service account that may do everything; returns a token of it. On localkube every account may.
async fn account(env: &ControllerEnv) -> String {
    let name = &env.namespace;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    env.create("/api/v1/namespaces/{ns}/serviceaccounts", account).await;
    if env.is_real() {
        let group = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]}
            ]
        });
        env.create(ROLES, role).await;
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": name}]
        });
        env.create(BINDINGS, binding).await;
    }
    shared::token(&env.client, name, ACCOUNT).await
}

/// The passes that the survivor had before the kill are those of the decision log, at every time. How many of the last ones may be
/// missing is a matter of time, which `controllers` tests with a clock of its own.
#[test]
fn history_of_a_killed_leader_is_asked_from_the_survivor() -> Result<(), Failure> {
    on_both(async |env| {
        let namespace = env.namespace.clone();
        env.deployment("web", 4).await;
        env.ask_for("web", 4);
        env.hpa("web", 2, 8, json!([queue("web")])).await;
        let token = account(&env).await;
        let (first, second) = tokio::join!(Replica::start(&env, &token), Replica::start(&env, &token));
        let leads = |replica: &Replica| !logged(&replica.log).is_empty();
        env.until("a leader", async || if leads(&first) || leads(&second) { Ok(()) } else { Err(()) }).await;
        let (mut leader, survivor) = if leads(&first) { (first, second) } else { (second, first) };
        let random = RandomState::new();
        // Of both: on a busy machine the lease may change hands before the kill.
        let passes = || logged(&leader.log).len() + logged(&survivor.log).len();
        for load in 0..LOADS {
            let wanted = 2 + random.hash_one(load) % 7;
            env.ask_for("web", wanted.try_into().unwrap());
            let before = passes();
            env.until("passes with this load", async || {
                let made = passes() - before;
                if made >= PASSES_PER_LOAD { Ok(()) } else { Err(made) }
            })
            .await;
        }
        let copied = logged(&leader.log).pop().unwrap();
        env.until("the history of the leader at the other replica", async || {
            let found = survivor.decision_at(&namespace, time(&copied)).await;
            if decided(&found) == decided(&copied) { Ok(()) } else { Err(found) }
        })
        .await;
        env.ask_for("web", if env.replicas("web").await < 5 { 8 } else { 2 });
        leader.kill(&env).await;
        let killed = logged(&leader.log);
        let end = killed.last().map(time).unwrap();
        env.until("decisions of the survivor", async || {
            logged(&survivor.log).iter().any(|pass| time(pass) > end).then_some(()).ok_or(())
        })
        .await;

        // A busy machine may have changed the leader before, so that both have decided.
        let mut all: Vec<Value> = killed.iter().cloned().chain(logged(&survivor.log)).collect();
        all.sort_by_key(time);
        let known: Vec<&Value> = all.iter().filter(|pass| time(pass) <= time(&copied)).collect();
        assert!(known.len() >= PASSES_PER_LOAD, "on {}: {}", env.cluster, known.len());
        for (index, expected) in known.iter().enumerate() {
            let from = time(expected);
            let next = known.get(index + 1).map_or(from, |next| time(next));
            for at in [from, from + next.duration_since(from) / 2] {
                let found = survivor.decision_at(&namespace, at).await;
                assert_eq!(decided(&found), decided(expected), "on {} at {at}: {found}", env.cluster);
            }
        }
        let lost = killed.iter().rev().map(time).take_while(|at| *at > time(&copied)).count();
        println!(
            "{}: {} passes are the same; {lost} were made after the last look",
            env.cluster,
            known.len()
        );
        if env.is_real() {
            env.delete(&format!("{BINDINGS}/{namespace}")).await;
            env.delete(&format!("{ROLES}/{namespace}")).await;
        }
        env.delete(&format!("/api/v1/namespaces/kube-system/secrets/{namespace}")).await;
    })
}
