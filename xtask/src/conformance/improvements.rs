//! Deliberate differences from the replaced programs without `--compat=strict` (docs/compatibility.md).

mod rounds;
mod rules;
#[cfg(test)]
mod tests;

use super::{Difference, Outcome};
pub(super) use rules::only_hidden_body;

/// A deliberate improvement upon the recorded answers of a file.
pub(crate) struct Improvement {
    /// The file's name, without its endings.
    file: &'static str,
    /// The improvement.
    pub(crate) reason: &'static str,
    /// The records in which the improvement shows.
    shown: Shown,
}

/// The records in which an improvement shows.
enum Shown {
    /// In the records with these ids, with blanks between. A record that shows several is listed with what it shows first.
    In(&'static str),
    /// By rule: wherever this explains a difference.
    Wherever(fn(&Difference) -> bool),
    /// The same, in a file that has no such record in every release of KEDA.
    WhereRecorded(fn(&Difference) -> bool),
}

/// The verdict on a record without `--compat=strict`.
#[derive(Default)]
pub(crate) struct Verdict {
    /// The improvements that it shows.
    pub(crate) improvements: Vec<&'static Improvement>,
    /// Differences that no improvement explains.
    pub(crate) unlisted: Vec<Difference>,
    /// Improvements that are listed and make no difference.
    pub(crate) vain: Vec<Difference>,
}

/// All improvements.
const TABLE: &[Improvement] = &[
    Improvement::of(
        "adapter_config",
        "the scope of a resource comes from discovery, not from a list of three",
        "hand-77 rand-74 rand-196 rand-202",
    ),
    Improvement::of(
        "adapter_config",
        "one failing selector does not remove the metrics of the others",
        "hand-107",
    ),
    Improvement::of(
        "adapter_result",
        "NaN is no value, infinity is an error, and a value that is too large becomes the largest possible one",
        "r-55 r-56 r-57 r-58 r-59 r-60 r-61 r-62 r-63 r-64 r-65 r-66 r-70 r-71 r-72 r-73 r-74 r-75 \
         r-76 r-77 r-78 r-82 r-83 r-84 r-130 r-131 r-132 r-136 r-137 r-138 r-142 r-143 r-144 r-211 \
         r-212 r-213 r-214 r-247 r-248 r-249 r-250 r-255 r-256 r-257 r-258 r-549",
    ),
    Improvement::of(
        "adapter_result",
        "if Prometheus fails, requests for nodes and pods are answered with 503, not with an empty list",
        "r-105 r-108 r-111 r-114 r-174 r-178 r-182 r-186 r-190 r-194 r-198 r-202 r-206 r-222 r-226 \
         r-262 r-318 r-322 r-326 r-330 r-338 r-541 r-542",
    ),
    Improvement::of(
        "adapter_result",
        "an unknown value of a container is left out, not zero",
        "r-210 r-230 r-234 r-238 r-242 r-246 r-254 r-266 r-286 r-290 r-294 r-298 r-302 r-306 r-310 \
         r-314 r-334 r-519 r-520",
    ),
    Improvement::of(
        "adapter_result",
        "`!=` in a selector of series is echoed as NotIn instead of an error",
        "r-406 r-407 r-424 r-425",
    ),
    Improvement::of(
        "adapter_result",
        "a malformed selector of series is an error of the client (400)",
        "r-414 r-415 r-416 r-417",
    ),
    Improvement {
        file: "adapter_result",
        reason: "values of custom metrics carry the time of the sample, not that of the answer",
        shown: Shown::Wherever(rules::only_times),
    },
    Improvement {
        file: "adapter_result",
        reason: "errors have the cause after the recorded text",
        shown: Shown::Wherever(rules::only_causes),
    },
    Improvement::of(
        "custom_api",
        "a malformed metricLabelSelector is an error of the client (400, not 500)",
        "h-274 h-275 h-276 h-277 h-279 h-280 h-281 h-282 h-289 h-290 h-291 h-292 h-705 h-712 h-750 \
         h-764 h-784 h-798",
    ),
    Improvement::of(
        "custom_api",
        "aggregated discovery names the custom and external groups too",
        "h-690 h-692",
    ),
    Improvement::of(
        "custom_api",
        "an empty list of metrics has a placeholder, so that clients do not report an error",
        "h-650 h-651 h-652 h-653 h-654",
    ),
    Improvement::of(
        "resource_api",
        "version v1 of the API is served and announced besides v1beta1",
        "m-36 m-37 m-38 m-39 m-372 m-374",
    ),
    Improvement::of(
        "kubelet",
        "one failed scrape does not hide a node: its last samples stay for a while, with their own time",
        "dual-both-down dual-refused dual-timeout dual-status-201 dual-status-204 dual-status-301 \
         dual-status-401 dual-status-403 dual-status-404 dual-status-429 dual-status-500 \
         dual-status-503 rand-12 rand-18 rand-40 rand-48 rand-50 rand-56 rand-65 rand-76 rand-113 \
         rand-118 rand-141 rand-154 rand-165 rand-189 rand-205 rand-207 rand-217 rand-218 rand-234 \
         rand-238 rand-254 rand-54 rand-227",
    ),
    Improvement::of(
        "kubelet",
        "an answer without any metrics is a failed scrape (`resource_scrape_error 1`, empty)",
        "hand-21 dual-empty dual-scrape-error rand-2 rand-10 rand-23 rand-24 rand-41 rand-46 rand-66 \
         rand-75 rand-78 rand-80 rand-84 rand-95 rand-99 rand-119 rand-134 rand-146 rand-147 rand-159 \
         rand-160 rand-163 rand-166 rand-170 rand-172 rand-184 rand-185 rand-186 rand-212 rand-228 \
         rand-232 rand-244 rand-251 rand-258",
    ),
    Improvement::of(
        "kubelet",
        "a line that cannot be parsed drops its own object, not the whole node",
        "dual-bad-line line-2 line-3 line-4 line-12 line-13 line-14 line-16 line-17 line-18 line-19 \
         line-20 line-30 line-31 line-32 line-33 line-34 line-42 line-43 line-44 line-49 line-50 \
         line-51 line-54 line-55 line-56 line-57 line-58 line-71 line-73 line-75 line-76 line-78 \
         line-84 line-85 line-87 line-88 line-91 line-92 line-93 line-100 line-101 line-105 line-106 \
         line-107 line-108 line-109 line-110 line-116 special-37 special-43 special-51 special-52 \
         special-53 special-54 special-55 special-56 rand-42 rand-138 rand-192 rand-252",
    ),
    Improvement::of(
        "kubelet",
        "a node or pod that was complete stays for a while when it is not",
        "special-30 special-31 special-32 special-33 special-34 special-35 special-36 rand-6 rand-13 \
         rand-14 rand-16 rand-20 rand-33 rand-37 rand-38 rand-58 rand-64 rand-70 rand-81 rand-83 \
         rand-85 rand-93 rand-102 rand-108 rand-112 rand-121 rand-127 rand-128 rand-133 rand-136 \
         rand-140 rand-142 rand-152 rand-162 rand-167 rand-174 rand-180 rand-183 rand-202 rand-204 \
         rand-206 rand-211 rand-214 rand-223 rand-224 rand-231 rand-239 rand-250 rand-256 rand-257 \
         rand-260",
    ),
    Improvement::of(
        "kubelet",
        "a pod is not served with less than it uses: a counter that went backwards hides it until the next rate",
        "hand-8 hand-19 special-27 special-28 special-29 rand-4 rand-8 rand-31 rand-32 rand-44 \
         rand-51 rand-55 rand-59 rand-61 rand-69 rand-71 rand-82 rand-88 rand-96 rand-97 rand-115 \
         rand-116 rand-143 rand-144 rand-151 rand-164 rand-171 rand-178 rand-194 rand-195 rand-203 \
         rand-209 rand-210 rand-213 rand-219 rand-220 rand-245 rand-248",
    ),
    Improvement::of(
        "kubelet",
        "a missing or earlier start time does not invalidate a counter that continues",
        "hand-15 hand-18 special-39 special-41 special-42 rand-5 rand-49 rand-74 rand-130 rand-158 \
         rand-225 rand-243",
    ),
    Improvement::of(
        "kubelet",
        "the time of a rate is that of the counter, not of the memory",
        "special-49 rand-60 rand-68 rand-72 rand-77 rand-86 rand-87 rand-92 rand-94 rand-104 rand-106 \
         rand-110 rand-120 rand-125 rand-132 rand-148 rand-168 rand-177 rand-188 rand-191 rand-221 \
         rand-222 rand-230 rand-236 rand-237 rand-259",
    ),
    Improvement::of(
        "kubelet",
        "labels are read by name, not found by their text",
        "special-5 special-9 special-10 special-22 special-24",
    ),
    Improvement::of("kubelet", "times beyond the year 2262 are none, and do not wrap around", "special-47"),
    Improvement::of(
        "kubelet",
        "counters of one pod from two nodes are not mixed; the newest point counts",
        "rand-26",
    ),
    Improvement::of(
        "webhook",
        "a ScaledObject or autoscaler with a target kind that the cluster does not have does not block other objects",
        "webhook-00287 webhook-00288 webhook-00295 webhook-00296 webhook-00303 webhook-00304 webhook-00311 \
         webhook-00312 webhook-00433 webhook-00434 webhook-00441 webhook-00442 webhook-00449 webhook-00450 \
         webhook-00457 webhook-00458 webhook-00467",
    ),
    Improvement::of(
        "webhook",
        "a target of a formula that is not a finite number is refused",
        "webhook-00635 webhook-00636",
    ),
    Improvement::of(
        "webhook",
        "the error names the HPA that is already in use, whether its name was configured or not",
        "webhook-00463",
    ),
    Improvement::of(
        "modifiers",
        "the result of a formula may be an integer",
        "modifiers-00421 modifiers-00422",
    ),
    Improvement::of(
        "modifiers",
        "a target of a formula that is not a finite number is refused",
        "modifiers-00444 modifiers-00445",
    ),
    Improvement::of("webhook", "oauth2 is checked beside any pod identity", "webhook-00865 webhook-00866"),
    Improvement::of("webhook", "a dry run leaves no events behind", "webhook-01087"),
    Improvement::of(
        "webhook",
        "a filePath that cannot work leads to a warning",
        "webhook-00868 webhook-00869",
    ),
    Improvement {
        file: "executor",
        reason: "an active trigger counts although another trigger fails: the cooldown starts when it becomes inactive",
        shown: Shown::Wherever(rounds::only_later),
    },
    Improvement {
        file: "executor",
        reason: "events have the cause of a failed scale write",
        shown: Shown::Wherever(rounds::only_causes),
    },
    Improvement::of(
        "executor",
        "failing triggers do not scale to zero before the fallback is due, even if it is zero",
        rounds::EXECUTOR_HELD,
    ),
    Improvement::of("executor", "a forbidden scale-out is not done to reach the minimum", "executor-02209"),
    Improvement::of(
        "fallback",
        "a failed source is an error, not −1, where a fallback of formulas has no formula",
        rounds::FALLBACK_PLACEHOLDER,
    ),
    Improvement::of(
        "fallback",
        "a target that is not whole does not disable the fallback of a formula",
        rounds::FALLBACK_TARGET,
    ),
    Improvement {
        file: "poll",
        reason: "an active trigger counts although another trigger fails: the cooldown starts when it becomes inactive",
        shown: Shown::Wherever(rounds::only_later),
    },
    Improvement {
        file: "poll",
        reason: "conditions and responses have the cause after the recorded text",
        shown: Shown::Wherever(rounds::only_causes),
    },
    Improvement {
        file: "poll",
        reason: "active metrics of a formula, and active metrics without values, are reported as active",
        shown: Shown::Wherever(rounds::only_activity),
    },
    Improvement::of(
        "poll",
        "a failed source is an error, not −1, where a fallback of formulas has no formula",
        rounds::POLL_PLACEHOLDER,
    ),
    Improvement::of(
        "poll",
        "a formula that cannot be computed is an error: nothing is scaled to zero, and the cause is reported",
        rounds::POLL_FORMULA,
    ),
    Improvement::of("poll", "the result of a formula may be a whole number", rounds::POLL_INTEGER),
    Improvement::of(
        "poll",
        "a cached value is the value of the source, and does not change its health",
        rounds::POLL_REMEMBERED,
    ),
    Improvement::of(
        "poll",
        "a trigger is active if any of its metrics is; each is named once, by its own name",
        rounds::POLL_METRICS,
    ),
    Improvement::of("poll", "a fallback to 0 replicas is no activity", rounds::POLL_NONE),
    Improvement::of(
        "poll",
        "failing triggers do not scale to zero before the fallback is due, even if it is zero",
        rounds::POLL_HELD,
    ),
    Improvement::of(
        "poll",
        "a fallback is reported when its condition changes, not in every round",
        rounds::POLL_TURN,
    ),
    Improvement::of(
        "hpa_for_scaledobject",
        "a trigger on one container's cpu or memory stays in the HPA beside a formula",
        "hpa_for_scaledobject-00222 hpa_for_scaledobject-00225 hpa_for_scaledobject-00228 \
         hpa_for_scaledobject-00231 hpa_for_scaledobject-00234 hpa_for_scaledobject-00252 \
         hpa_for_scaledobject-00261 hpa_for_scaledobject-00264 hpa_for_scaledobject-00267",
    ),
    Improvement::of(
        "hpa_for_scaledobject",
        "a target of a formula that is too large becomes the largest possible one",
        "hpa_for_scaledobject-00266 hpa_for_scaledobject-00268",
    ),
    Improvement::of(
        "hpa_for_scaledobject",
        "a missing TriggerAuthentication, Secret, ConfigMap, key or container is an error that names it",
        "hpa_for_scaledobject-00275 hpa_for_scaledobject-00276 hpa_for_scaledobject-00277 \
         hpa_for_scaledobject-00278 hpa_for_scaledobject-00280 hpa_for_scaledobject-00282 \
         hpa_for_scaledobject-00283 hpa_for_scaledobject-00284 hpa_for_scaledobject-00291 \
         hpa_for_scaledobject-00292 hpa_for_scaledobject-00303 hpa_for_scaledobject-00304 \
         hpa_for_scaledobject-00331 hpa_for_scaledobject-00332",
    ),
    Improvement::of(
        "hpa_for_scaledobject",
        "the error for an unknown trigger type suggests a similar one",
        "hpa_for_scaledobject-00339 hpa_for_scaledobject-00340 hpa_for_scaledobject-00341",
    ),
    Improvement {
        file: "metric_specs",
        reason: "errors do not quote responses of addresses that tenants choose",
        shown: Shown::WhereRecorded(only_hidden_body),
    },
    Improvement {
        file: "metric_specs",
        reason: "an external scaler that does not answer is an error, not an empty list of metrics: nothing is removed from the HPA",
        shown: Shown::Wherever(rules::only_silence),
    },
    Improvement::of(
        "scaledjob",
        "the custom strategy does not go beyond maxReplicaCount",
        "scaledjob-00849 scaledjob-00852 scaledjob-01231 scaledjob-01291",
    ),
    Improvement {
        file: "scaledjob",
        reason: "the condition of a ScaledJob has the failed trigger and the cause",
        shown: Shown::Wherever(rounds::only_causes),
    },
];

impl Improvement {
    const fn of(file: &'static str, reason: &'static str, ids: &'static str) -> Self {
        Self { file, reason, shown: Shown::In(ids) }
    }

    fn ids(&self) -> impl Iterator<Item = &'static str> {
        let ids = match self.shown {
            Shown::In(ids) => ids,
            Shown::Wherever(_) | Shown::WhereRecorded(_) => "",
        };
        ids.split_whitespace()
    }

    fn explains(&self, difference: &Difference) -> bool {
        matches!(self.shown, Shown::Wherever(rule) | Shown::WhereRecorded(rule) if rule(difference))
    }

    /// Whether every file must have a record that shows it.
    pub(crate) fn is_required(&self) -> bool {
        !matches!(self.shown, Shown::WhereRecorded(_))
    }
}

/// The improvements upon a file.
pub(crate) fn upon(file: &str) -> impl Iterator<Item = &'static Improvement> {
    TABLE.iter().filter(move |improvement| improvement.file == file)
}

/// Compares the differences of a record without `--compat=strict` with the table.
pub(crate) fn judge(file: &str, outcome: &mut Outcome) -> Verdict {
    let mut verdict = Verdict::default();
    for difference in std::mem::take(&mut outcome.better) {
        match upon(file).find(|improvement| improvement.explains(&difference)) {
            Some(known) if verdict.improvements.iter().any(|other| std::ptr::eq(*other, known)) => {}
            Some(improvement) => verdict.improvements.push(improvement),
            None => verdict
                .unlisted
                .push(Difference { at: format!("without --compat=strict: {}", difference.at), ..difference }),
        }
    }
    let listed: Vec<&Improvement> = upon(file).filter(|one| one.ids().any(|id| id == outcome.id)).collect();
    if !listed.is_empty() && verdict.unlisted.is_empty() {
        verdict.vain.extend(listed.iter().map(|improvement| Difference {
            at: "without --compat=strict".to_owned(),
            expected: format!("a difference, as listed: {}", improvement.reason),
            got: "the recorded answer".to_owned(),
        }));
    } else if !listed.is_empty() {
        verdict.unlisted.clear();
        verdict.improvements = listed;
    } else if outcome.free {
        // An informative record has nothing to improve.
        verdict.unlisted.clear();
    }
    verdict
}
