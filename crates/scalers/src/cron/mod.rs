//! cron: so many replicas between two times of the day.
