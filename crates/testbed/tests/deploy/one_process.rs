//! One process understands the flags that `plimsoll migrate values` makes of the values of the replaced programs.

use std::path::PathBuf;
use std::process::Command;

use testbed::program::TempFolder;

use crate::chart::{of_kind, rendered};
use crate::shared::program::program;

/// With this file, which does not exist, a process that understands its flags ends with exit code 1, and one that does not with 2.
const NO_KUBECONFIG: &str = "--kubeconfig=/nonexistent/kubeconfig";
const ALL_ROLES: &str =
    "--set=singleProcess.enabled=true,controller.enabled=true,controller.mode=active,operator.enabled=true";

/// The values of KEDA's chart that become flags and variables, as it has them by default, except for the log level.
const KEDA_VALUES: &str = "clusterName: kubernetes-default
clusterDomain: cluster.local
watchNamespace: ''
logging:
  operator: {level: LEVEL, format: console, timeEncoding: rfc3339}
http: {timeout: 3000, keepAlive: {enabled: true}, minTlsVersion: TLS12}
certificates: {operator: {caDirs: [/custom/ca]}}
";
/// The values of the charts of the replaced metrics servers that become flags, as they have them by default, and flags that are usual.
const METRICS_VALUES: [(&str, &str); 2] = [
    (
        "metrics-server",
        "defaultArgs: [--cert-dir=/tmp, '--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname', \
         --kubelet-use-node-status-port, --metric-resolution=15s]\nargs: [--kubelet-insecure-tls, --v=4]\n",
    ),
    (
        "prometheus-adapter",
        "prometheus: {url: http://prometheus.default.svc, port: 9090, path: ''}\nlogLevel: 4\nmetricsRelistInterval: 1m\n\
         rules: {default: false, custom: [{seriesQuery: a}]}\nextraArguments: [--logtostderr=true]\n",
    ),
];

/// A file with the values of our chart.
fn converted(temp_folder: &TempFolder, peer: &str, theirs: &str) -> PathBuf {
    let file = temp_folder.write(&format!("{peer}.yaml"), theirs).unwrap();
    let output =
        Command::new(program()).args(["migrate", "values", "--from", peer]).arg(file).output().unwrap();
    assert!(output.status.success(), "{peer}: {output:?}");
    temp_folder.write(&format!("ours-of-{peer}.yaml"), &String::from_utf8_lossy(&output.stdout)).unwrap()
}

/// Asserts that `plimsoll run` understands the flags that the chart gives it, and returns them.
fn check_flags(values: &[String]) -> Vec<String> {
    let objects = rendered(values);
    let deployment = of_kind(&objects, "Deployment")[0];
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let arguments: Vec<String> = arguments.iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    let output = Command::new(program()).args(&arguments).arg(NO_KUBECONFIG).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}\n{text}");
    assert!(text.contains("/nonexistent/kubeconfig"), "{arguments:?}\n{text}");
    arguments
}

#[test]
fn one_process_understands_the_flags_of_the_replaced_programs() {
    for (peer, theirs) in METRICS_VALUES {
        for level in ["info", "debug"] {
            let temp_folder = TempFolder::new().unwrap();
            let files = [
                converted(&temp_folder, peer, theirs),
                converted(&temp_folder, "keda", &KEDA_VALUES.replace("LEVEL", level)),
            ];
            let mut values = vec![ALL_ROLES.to_owned()];
            values.extend(files.map(|file| format!("--values={}", file.display())));
            let arguments = check_flags(&values);
            assert!(arguments.contains(&"--v=4".to_owned()), "{arguments:?}");
            let of_keda = arguments.contains(&format!("--zap-log-level={level}"));
            assert_eq!(of_keda, level != "info", "the default is left out: {arguments:?}");
        }
    }
}

#[test]
fn one_process_understands_flags_that_are_superfluous_in_it() {
    check_flags(&[
        ALL_ROLES.to_owned(),
        "--set=metrics.enabled=true,metrics.extraArgs={--operator=plimsoll-system/plimsoll-operator}"
            .to_owned(),
        "--set=operator.extraArgs={--zap-log-level=info,--zap-encoder=json,--log-format=text}".to_owned(),
    ]);
}
