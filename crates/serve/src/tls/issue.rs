//! Parameters of the certificates that this process issues.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{CertificateParams, DistinguishedName, DnType};

/// How far `notBefore` lies in the past, because the clocks of clients differ from ours.
pub(super) const NOT_BEFORE_SKEW: SignedDuration = SignedDuration::from_hours(24);

pub(super) fn parameters(
    names: Vec<String>,
    name: &str,
    now: Timestamp,
    life: SignedDuration,
) -> Result<CertificateParams, rcgen::Error> {
    let date = |at: Timestamp| {
        let at = at.to_zoned(TimeZone::UTC);
        let second = at.duration_since(&at.start_of_day().unwrap_or_else(|_| at.clone())).as_secs();
        let midnight = rcgen::date_time_ymd(i32::from(at.year()), at.month() as u8, at.day() as u8);
        midnight + Duration::from_secs(u64::try_from(second).unwrap_or_default())
    };
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.not_before = date(now.saturating_sub(NOT_BEFORE_SKEW).unwrap_or(now));
    parameters.not_after = date(now.saturating_add(life).unwrap_or(now));
    Ok(parameters)
}
