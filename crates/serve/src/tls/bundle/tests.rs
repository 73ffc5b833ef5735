#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn at(day: i32) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + DAY * day
}

fn names() -> Vec<String> {
    ["keda-operator.keda.svc", "127.0.0.1"].map(str::to_owned).to_vec()
}

fn lives() -> CertificateLifetimes {
    CertificateLifetimes::default()
}

fn made(day: i32) -> CertificateBundle {
    CertificateBundle::make(&names(), &lives(), at(day)).unwrap()
}

fn next(material: &CertificateBundle, now: Timestamp) -> BundleRenewal {
    material.next(&names(), &lives(), now).unwrap()
}

fn renewed(material: &CertificateBundle, now: Timestamp) -> CertificateBundle {
    match next(material, now) {
        BundleRenewal::Renew(other) => other,
        other => panic!("{other:?}"),
    }
}

fn replaced(material: &CertificateBundle, now: Timestamp) -> CertificateBundle {
    match next(material, now) {
        BundleRenewal::Replace(other) => other,
        other => panic!("{other:?}"),
    }
}

fn authorities(material: &CertificateBundle) -> usize {
    material.authorities.matches("BEGIN CERTIFICATE").count()
}

#[test]
fn new_bundle_is_valid_and_kept() {
    let material = made(0);
    assert!(material.is_good(at(0)));
    for day in [0, 1, 200, 270] {
        assert_eq!(next(&material, at(day)), BundleRenewal::Keep, "day {day}");
    }
    assert_eq!(format!("{material:?}"), "CertificateBundle { .. }");
}

#[test]
fn a_certificate_is_followed_by_one_of_the_same_authority_in_time() {
    let material = made(0);
    let other = renewed(&material, at(280));
    assert_eq!((&other.authorities, &other.authority_key), (&material.authorities, &material.authority_key));
    assert_ne!(other.certificate, material.certificate);
    assert_eq!(next(&other, at(280)), BundleRenewal::Keep);
    // Too late is not too late for the authority.
    let late = replaced(&material, at(400));
    assert_eq!(late.authorities, material.authorities);
    assert_eq!(next(&late, at(400)), BundleRenewal::Keep);
}

#[test]
fn a_name_that_is_missing_is_added() {
    let more = [names(), vec!["another".to_owned()]].concat();
    let material = made(0);
    let BundleRenewal::Renew(other) = material.next(&more, &lives(), at(1)).unwrap() else { panic!("kept") };
    assert_eq!(other.next(&more, &lives(), at(1)).unwrap(), BundleRenewal::Keep);
}

#[test]
fn new_authority_is_published_before_it_signs_and_the_old_one_stays_while_used() {
    // An authority must outlive what it signs: it is followed a year before its end.
    let mut material = made(0);
    let mut day = 0;
    while day < 9 * 365 - 1 {
        day += 90;
        let now = at(day.min(9 * 365 - 1));
        if let BundleRenewal::Renew(other) = next(&material, now) {
            assert_eq!(other.authorities, material.authorities, "day {day}");
            material = other;
        }
    }
    let old = material.clone();
    let day = 9 * 365 + 1;
    let distributed = renewed(&material, at(day));
    assert_eq!(authorities(&distributed), 2);
    assert!(distributed.authorities.ends_with(&old.authorities));
    assert_eq!(distributed.certificate, old.certificate, "the new authority has signed already");
    assert_eq!(next(&distributed, at(day)), BundleRenewal::Keep);
    // Later it signs, and whoever still shows the old certificate is believed.
    let later = at(day) + SignedDuration::from_mins(11);
    let signed = renewed(&distributed, later);
    assert_eq!(signed.authorities, distributed.authorities);
    assert_ne!(signed.certificate, old.certificate);
    let mixed =
        CertificateBundle { certificate: old.certificate.clone(), key: old.key.clone(), ..signed.clone() };
    assert!(mixed.is_good(later), "the old certificate is not believed any more");
    let alone = CertificateBundle { authorities: old.authorities.clone(), ..signed.clone() };
    assert!(!alone.is_good(later), "the old authority has signed");
    // When everything that it signed is over, so is the old one.
    let mut material = signed;
    for day in (day..day + 460).step_by(50) {
        if let BundleRenewal::Renew(other) = next(&material, at(day)) {
            material = other;
        }
    }
    assert_eq!(authorities(&material), 1);
    assert_eq!(next(&material, at(day + 460)), BundleRenewal::Keep);
}

#[test]
fn unusable_bundles_are_replaced() {
    let (material, stranger) = (made(0), made(0));
    let empty = CertificateBundle {
        authorities: String::new(),
        authority_key: String::new(),
        certificate: String::new(),
        key: String::new(),
    };
    let broken = [
        ("empty", empty),
        ("another key", CertificateBundle { key: stranger.key.clone(), ..material.clone() }),
        (
            "another authority",
            CertificateBundle { authorities: stranger.authorities.clone(), ..material.clone() },
        ),
        ("nonsense", CertificateBundle { certificate: "-----BEGIN".repeat(1000), ..material.clone() }),
        (
            "half",
            CertificateBundle {
                authorities: material.authorities.chars().take(300).collect(),
                ..material.clone()
            },
        ),
    ];
    for (what, broken) in broken {
        assert!(!broken.is_good(at(1)), "{what}");
        let other = replaced(&broken, at(1));
        assert!(other.is_good(at(1)), "{what}");
        assert_eq!(next(&other, at(1)), BundleRenewal::Keep, "{what}");
    }
}

#[test]
fn authority_without_its_key_stays_trusted() {
    let (material, stranger) = (made(0), made(0));
    for key in [String::new(), stranger.authority_key] {
        let other = renewed(&CertificateBundle { authority_key: key, ..material.clone() }, at(1));
        assert_eq!((authorities(&other), &other.certificate), (2, &material.certificate));
        assert!(other.is_good(at(1)));
    }
}

#[test]
fn short_lifetimes_are_renewed_in_time() {
    let hour = SignedDuration::from_hours(1);
    let lives =
        CertificateLifetimes { authority: hour * 72, certificate: hour * 24, distributed_before_use: hour };
    let mut material = CertificateBundle::make(&names(), &lives, at(0)).unwrap();
    let (mut certificates, mut bundles) = (0, 0);
    for tick in 0..24 * 20 {
        let now = at(0) + hour * tick;
        assert!(material.is_good(now), "hour {tick}");
        match material.next(&names(), &lives, now).unwrap() {
            BundleRenewal::Keep => {}
            BundleRenewal::Renew(other) => {
                certificates += u32::from(other.certificate != material.certificate);
                bundles += u32::from(other.authorities != material.authorities);
                material = other;
            }
            BundleRenewal::Replace(_) => panic!("hour {tick}: nothing could be used"),
        }
        assert!(authorities(&material) <= 3, "hour {tick}");
    }
    assert!(certificates > 15 && bundles > 10, "{certificates} {bundles}");
}
