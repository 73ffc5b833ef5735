use std::time::Duration;

use crate::lease::LeaseSettings;

fn settings(lease: u64, renew: u64, retry: u64) -> LeaseSettings {
    LeaseSettings {
        lease_duration: Duration::from_millis(lease),
        renew_deadline: Duration::from_millis(renew),
        retry_period: Duration::from_millis(retry),
        ..LeaseSettings::new("ns", "name", "me")
    }
}

#[test]
fn the_defaults_are_those_of_client_go() {
    let defaults = LeaseSettings::new("ns", "name", "me");
    assert_eq!(defaults, settings(15_000, 10_000, 2_000));
    assert_eq!(defaults.validate(), Ok(()));
}

#[test]
fn invalid_settings_are_refused_with_flag_and_remedy() {
    let cases = [
        (settings(10_000, 10_000, 2_000), "--leader-elect-lease-duration (10s) must be greater than"),
        (
            settings(15_000, 2_400, 2_000),
            "--leader-elect-renew-deadline (2.4s) must be greater than 1.2 times",
        ),
        (settings(0, 10_000, 2_000), "--leader-elect-lease-duration must be greater than zero"),
        (settings(15_000, 0, 2_000), "--leader-elect-renew-deadline must be greater than zero"),
        (settings(15_000, 10_000, 0), "--leader-elect-retry-period must be greater than zero"),
        (LeaseSettings::new("", "name", "me"), "--leader-elect-resource-namespace must not be empty"),
        (LeaseSettings::new("ns", "", "me"), "--leader-elect-resource-name must not be empty"),
        (LeaseSettings::new("ns", "name", ""), "the identity of a candidate must not be empty"),
    ];
    for (settings, start) in cases {
        let error = settings.validate().unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }
    assert!(
        settings(10_000, 10_000, 2_000).validate().unwrap_err().to_string().ends_with("lower the latter")
    );
    assert_eq!(settings(15_000, 2_401, 2_000).validate(), Ok(()));
}

#[test]
fn the_written_duration_is_never_shorter_than_the_setting() {
    // 1.5 s are written as 2; the write window ends before that, and after the renew deadline.
    let odd = settings(1_500, 1_000, 200);
    assert_eq!(odd.lease_seconds(), 2);
    assert_eq!(odd.write_window(), Duration::from_millis(1_500));
    assert_eq!(settings(15_000, 10_000, 2_000).write_window(), Duration::from_millis(12_500));
    // Settings that should have been refused are at least not dangerous.
    assert_eq!(settings(0, 0, 0).lease_seconds(), 1);
    assert_eq!(settings(1_000, 9_000, 0).write_window(), Duration::from_secs(1));
    assert!(settings(0, 0, 0).pause() >= Duration::from_millis(10));
    assert_eq!(settings(u64::MAX, u64::MAX, u64::MAX).lease_seconds(), i32::MAX as u64);
}

#[test]
fn candidates_wait_one_to_two_point_two_periods() {
    let defaults = LeaseSettings::new("ns", "name", "me");
    for (jitter, millis) in [(0.0, 2_000), (0.5, 3_200), (1.0, 4_400), (7.0, 4_400), (f64::NAN, 2_000)] {
        let expected = Duration::from_millis(millis);
        assert_eq!(defaults.candidate_pause(jitter), expected, "{jitter}");
    }
}
