//! The command for a tube's statistics, and its YAML response.

use crate::ScalerError;
use crate::answers::excerpt;

/// Maximum size of a response, in bytes.
pub(super) const AT_MOST: usize = 64 << 10;
/// Maximum length of a tube's name, in bytes.
const NAME: usize = 200;

/// The command for the statistics of a tube.
pub(super) fn command(tube: &str) -> Result<String, ScalerError> {
    // A name that contains a line end would start a second command.
    let odd = tube.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control());
    if odd || tube.is_empty() || tube.len() > NAME {
        return Err(ScalerError::new(format!("{tube:?} cannot be the name of a tube")));
    }
    Ok(format!("stats-tube {tube}\r\n"))
}

/// The state of a partially received response.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// Incomplete: more bytes are expected.
    More,
    /// Complete, with the number of jobs.
    Jobs(u64),
}

/// Decodes the bytes received so far.
pub(super) fn heard(bytes: &[u8], delayed: bool) -> Result<Heard, ScalerError> {
    let text = String::from_utf8_lossy(bytes);
    let Some((line, rest)) = text.split_once("\r\n") else { return Ok(Heard::More) };
    match line.split_once(' ') {
        // Tubes are created on first use and deleted when they are empty, so a missing tube has no jobs.
        _ if line == "NOT_FOUND" => Ok(Heard::Jobs(0)),
        Some(("OK", length)) => {
            let length: usize = length.parse().ok().filter(|length| *length <= AT_MOST).ok_or_else(|| {
                ScalerError::new(format!("beanstalkd answered {}", excerpt(line.as_bytes())))
            })?;
            match rest.get(..length) {
                Some(statistics) => jobs(statistics, delayed).map(Heard::Jobs),
                None => Ok(Heard::More),
            }
        }
        _ => Err(ScalerError::new(format!("beanstalkd answered {}", excerpt(line.as_bytes())))),
    }
}

fn jobs(statistics: &str, delayed: bool) -> Result<u64, ScalerError> {
    let count = |key: &str| {
        let mut pairs = statistics.lines().filter_map(|line| line.split_once(':'));
        let found = pairs
            .find(|(name, _)| name.trim() == key)
            .and_then(|(_, value)| value.trim().parse::<u64>().ok());
        found.ok_or_else(|| ScalerError::new(format!("beanstalkd does not tell {key}")))
    };
    let mut jobs = count("current-jobs-ready")?.saturating_add(count("current-jobs-reserved")?);
    if delayed {
        jobs = jobs.saturating_add(count("current-jobs-delayed")?);
    }
    Ok(jobs)
}
