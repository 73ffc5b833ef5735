//! The time zone of the user, as C libraries find it: `$TZ`, else `/etc/localtime`, else UTC.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

/// Where the zones of the system are.
const ZONE_FOLDERS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];

/// The local time zone.
pub(super) fn find() -> TimeZone {
    match std::env::var("TZ") {
        Ok(given) => named(&given).unwrap_or(TimeZone::UTC),
        Err(_) => read(Path::new("/etc/localtime")).unwrap_or(TimeZone::UTC),
    }
}

/// The zone of a value of `$TZ`: a file, the name of a zone, or a rule of POSIX. An empty one is UTC.
fn named(given: &str) -> Option<TimeZone> {
    let name = given.strip_prefix(':').unwrap_or(given);
    if name.is_empty() || name == "UTC" {
        return Some(TimeZone::UTC);
    }
    if name.starts_with('/') {
        return read(Path::new(name));
    }
    let inside = !name.split('/').any(|part| part == "..");
    let files = ZONE_FOLDERS.iter().filter(|_| inside).map(|folder| PathBuf::from(folder).join(name));
    files.map(|file| read(&file)).find_map(|zone| zone).or_else(|| TimeZone::posix(name).ok())
}

/// The zone of a file in the format TZif.
fn read(file: &Path) -> Option<TimeZone> {
    let target = std::fs::canonicalize(file).ok()?;
    let name =
        target.to_str().and_then(|path| path.split_once("zoneinfo/")).map_or("Local", |(_, name)| name);
    TimeZone::tzif(name, &std::fs::read(&target).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn zones_of_rules_and_names() {
        let summer: Timestamp = "2026-07-01T12:00:00Z".parse().unwrap();
        let clock = |zone: &TimeZone| summer.to_zoned(zone.clone()).strftime("%H:%M %Z").to_string();
        let rule = named("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(clock(&rule), "14:00 CEST");
        assert_eq!(clock(&named("").unwrap()), "12:00 UTC");
        assert_eq!(clock(&named(":UTC").unwrap()), "12:00 UTC");
        assert!(named("../../etc/passwd").is_none());
        assert!(named("Not/AZone").is_none());
    }
}
