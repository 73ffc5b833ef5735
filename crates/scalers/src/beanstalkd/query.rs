//! The command for a tube's statistics, and its YAML response.

use crate::ScalerError;
use crate::responses::hidden;

/// Maximum size of a response, in bytes.
pub(super) const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Maximum length of the first line of a response, in bytes.
const MAX_LINE_BYTES: usize = 256;
/// Maximum length of a tube's name, in bytes.
const MAX_TUBE_NAME_BYTES: usize = 200;

/// The command for the statistics of a tube.
pub(super) fn command(tube: &str) -> Result<String, ScalerError> {
    // A name that contains a line end would start a second command.
    let odd = tube.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control());
    if odd || tube.is_empty() || tube.len() > MAX_TUBE_NAME_BYTES {
        bail!("{tube:?} cannot be the name of a tube");
    }
    Ok(format!("stats-tube {tube}\r\n"))
}

/// The state of a partially received response.
#[derive(Debug, PartialEq)]
pub(super) enum DecodeProgress {
    /// Incomplete: more bytes are expected.
    Incomplete,
    /// Complete, with the number of jobs.
    Jobs(u64),
}

/// Decodes the bytes received so far. Lengths count bytes, so the response is split before it is decoded as text.
pub(super) fn decode(bytes: &[u8], delayed: bool) -> Result<DecodeProgress, ScalerError> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        // Every first line is shorter; looking for its end again and again takes time.
        if bytes.len() > MAX_LINE_BYTES {
            bail!("beanstalkd answered {}", hidden(bytes));
        }
        return Ok(DecodeProgress::Incomplete);
    };
    let (line, rest) = (bytes.get(..end).unwrap_or_default(), bytes.get(end + 2..).unwrap_or_default());
    let unexpected = || scaler_error!("beanstalkd answered {}", error_word(line));
    // Tubes are created on first use and deleted when they are empty, so a missing tube has no jobs.
    if line == b"NOT_FOUND" {
        return Ok(DecodeProgress::Jobs(0));
    }
    let length = std::str::from_utf8(line).ok().and_then(|line| line.strip_prefix("OK "));
    let length: usize = length.and_then(|length| length.parse().ok()).ok_or_else(unexpected)?;
    if length > MAX_RESPONSE_BYTES {
        return Err(unexpected());
    }
    match rest.get(..length) {
        Some(statistics) => jobs(&String::from_utf8_lossy(statistics), delayed).map(DecodeProgress::Jobs),
        None => Ok(DecodeProgress::Incomplete),
    }
}

/// The error of beanstalkd, if the line is one.
fn error_word(line: &[u8]) -> String {
    let known = ["BAD_FORMAT", "DRAINING", "INTERNAL_ERROR", "OUT_OF_MEMORY", "UNKNOWN_COMMAND"];
    let word = known.iter().find(|word| word.as_bytes() == line);
    word.map_or_else(|| hidden(line), |word| (*word).to_owned())
}

fn jobs(statistics: &str, delayed: bool) -> Result<u64, ScalerError> {
    let count = |key: &str| {
        let mut pairs = statistics.lines().filter_map(|line| line.split_once(':'));
        let found = pairs
            .find(|(name, _)| name.trim() == key)
            .and_then(|(_, value)| value.trim().parse::<u64>().ok());
        found.ok_or_else(|| scaler_error!("beanstalkd does not report {key}"))
    };
    let mut jobs = count("current-jobs-ready")?.saturating_add(count("current-jobs-reserved")?);
    if delayed {
        jobs = jobs.saturating_add(count("current-jobs-delayed")?);
    }
    Ok(jobs)
}
