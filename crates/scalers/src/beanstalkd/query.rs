//! The question for a tube's statistics, and their YAML.

use crate::Error;
use crate::answers::excerpt;

/// Statistics are larger than this nowhere.
pub(super) const AT_MOST: usize = 64 << 10;
/// A tube's name has at most so many bytes.
const NAME: usize = 200;

/// The command for the statistics of a tube.
pub(super) fn command(tube: &str) -> Result<String, Error> {
    // A name with a line end in it would be a second command.
    let odd = tube.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control());
    if odd || tube.is_empty() || tube.len() > NAME {
        return Err(Error::new(format!("{tube:?} cannot be the name of a tube")));
    }
    Ok(format!("stats-tube {tube}\r\n"))
}

/// What came so far: all of it, or how much more is to come.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// Not all; go on.
    More,
    /// All of it: how many jobs there are.
    Jobs(u64),
}

/// What came so far.
pub(super) fn heard(bytes: &[u8], delayed: bool) -> Result<Heard, Error> {
    let text = String::from_utf8_lossy(bytes);
    let Some((line, rest)) = text.split_once("\r\n") else { return Ok(Heard::More) };
    match line.split_once(' ') {
        // Tubes are made when they are first used, and go when they are empty.
        _ if line == "NOT_FOUND" => Ok(Heard::Jobs(0)),
        Some(("OK", length)) => {
            let length: usize = length
                .parse()
                .ok()
                .filter(|length| *length <= AT_MOST)
                .ok_or_else(|| Error::new(format!("beanstalkd answered {}", excerpt(line.as_bytes()))))?;
            match rest.get(..length) {
                Some(statistics) => jobs(statistics, delayed).map(Heard::Jobs),
                None => Ok(Heard::More),
            }
        }
        _ => Err(Error::new(format!("beanstalkd answered {}", excerpt(line.as_bytes())))),
    }
}

fn jobs(statistics: &str, delayed: bool) -> Result<u64, Error> {
    let count = |key: &str| {
        let mut pairs = statistics.lines().filter_map(|line| line.split_once(':'));
        let found = pairs
            .find(|(name, _)| name.trim() == key)
            .and_then(|(_, value)| value.trim().parse::<u64>().ok());
        found.ok_or_else(|| Error::new(format!("beanstalkd does not tell {key}")))
    };
    let mut jobs = count("current-jobs-ready")?.saturating_add(count("current-jobs-reserved")?);
    if delayed {
        jobs = jobs.saturating_add(count("current-jobs-delayed")?);
    }
    Ok(jobs)
}
