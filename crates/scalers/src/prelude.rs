//! What nearly every scaler uses; scalers import it with `use crate::prelude::*`.

pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use api::autoscaling::v2::MetricSpec;

pub(crate) use crate::backends::Backends;
pub(crate) use crate::metric::{self, external, milli, target_type, whole};
pub(crate) use crate::parameters::Secret;
pub(crate) use crate::single::{HttpSource, SingleMetricScaler, ValueSource, send};
pub(crate) use crate::table::sample::{self, Sample};
pub(crate) use crate::table::{ScalerType, WakeMode};
pub(crate) use crate::web::{HttpCall, SharedHttpClient};
pub(crate) use crate::{ParseError, Reading, Scaler, ScalerError, ScalerFuture, Trigger};
