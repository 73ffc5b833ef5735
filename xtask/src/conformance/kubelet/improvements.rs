//! Where we are better than metrics-server, unless told to be strict (docs/compatibility.md).

/// What is better, and the recordings that show it; one that shows several is listed with what it shows first.
const IMPROVEMENTS: &[(&str, &str)] = &[
    (
        "one failed scrape does not hide a node: what it told stays for a while, with its true time",
        "dual-both-down dual-refused dual-timeout dual-status-201 dual-status-204 dual-status-301 \
         dual-status-401 dual-status-403 dual-status-404 dual-status-429 dual-status-500 dual-status-503 \
         rand-12 rand-18 rand-40 rand-48 rand-50 rand-56 rand-65 rand-76 rand-113 rand-118 rand-141 rand-154 \
         rand-165 rand-189 rand-205 rand-207 rand-217 rand-218 rand-234 rand-238 rand-254 \
         rand-54 rand-227",
    ),
    (
        "an answer without any metrics is a failed scrape (`resource_scrape_error 1`, empty)",
        "hand-21 dual-empty dual-scrape-error rand-2 rand-10 rand-23 rand-24 rand-41 rand-46 rand-66 rand-75 \
         rand-78 rand-80 rand-84 rand-95 rand-99 rand-119 rand-134 rand-146 rand-147 rand-159 rand-160 \
         rand-163 rand-166 rand-170 rand-172 rand-184 rand-185 rand-186 rand-212 rand-228 rand-232 rand-244 \
         rand-251 rand-258",
    ),
    (
        "a line that cannot be read costs what it is about, not the whole node",
        "dual-bad-line line-2 line-3 line-4 line-12 line-13 line-14 line-16 line-17 line-18 line-19 line-20 \
         line-30 line-31 line-32 line-33 line-34 line-42 line-43 line-44 line-49 line-50 line-51 line-54 \
         line-55 line-56 line-57 line-58 line-71 line-73 line-75 line-76 line-78 line-84 line-85 line-87 \
         line-88 line-91 line-92 line-93 line-100 line-101 line-105 line-106 line-107 line-108 line-109 \
         line-110 line-116 special-37 special-43 special-51 special-52 special-53 special-54 special-55 \
         special-56 rand-42 rand-138 rand-192 rand-252",
    ),
    (
        "a node or pod that was complete stays for a while when it is not",
        "special-30 special-31 special-32 special-33 special-34 special-35 special-36 rand-6 rand-13 rand-14 \
         rand-16 rand-20 rand-33 rand-37 rand-38 rand-58 rand-64 rand-70 rand-81 rand-83 rand-85 rand-93 \
         rand-102 rand-108 rand-112 rand-121 rand-127 rand-128 rand-133 rand-136 rand-140 rand-142 rand-152 \
         rand-162 rand-167 rand-174 rand-180 rand-183 rand-202 rand-204 rand-206 rand-211 rand-214 rand-223 \
         rand-224 rand-231 rand-239 rand-250 rand-256 rand-257 rand-260",
    ),
    (
        "a pod is not served with less than it uses: a counter that went backwards hides it until the next rate",
        "hand-8 hand-19 special-27 special-28 special-29 rand-4 rand-8 rand-31 rand-32 rand-44 rand-51 \
         rand-55 rand-59 rand-61 rand-69 rand-71 rand-82 rand-88 rand-96 rand-97 rand-115 rand-116 rand-143 \
         rand-144 rand-151 rand-164 rand-171 rand-178 rand-194 rand-195 rand-203 rand-209 rand-210 rand-213 \
         rand-219 rand-220 rand-245 rand-248",
    ),
    (
        "a start time that is not told, or goes backwards, says nothing against a counter that goes on",
        "hand-15 hand-18 special-39 special-41 special-42 rand-5 rand-49 rand-74 rand-130 rand-158 rand-225 \
         rand-243",
    ),
    (
        "the time of a rate is that of the counter, not of the memory",
        "special-49 rand-60 rand-68 rand-72 rand-77 rand-86 rand-87 rand-92 rand-94 rand-104 rand-106 \
         rand-110 rand-120 rand-125 rand-132 rand-148 rand-168 rand-177 rand-188 rand-191 rand-221 rand-222 \
         rand-230 rand-236 rand-237 rand-259",
    ),
    (
        "labels are read by name, not found by their text",
        "special-5 special-9 special-10 special-22 special-24",
    ),
    ("times beyond the year 2262 are none, and do not wrap around", "special-47"),
    ("counters that two nodes tell of one pod are not mixed; the newest point counts", "rand-26"),
];

/// The improvements that a recording shows.
pub(super) fn reasons(id: &str) -> impl Iterator<Item = &'static str> {
    let shows = move |ids: &str| ids.split(' ').any(|one| one == id);
    IMPROVEMENTS.iter().filter(move |(_, ids)| shows(ids)).map(|(reason, _)| *reason)
}
