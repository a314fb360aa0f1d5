"""Every limit of the language in one place, each with its reason. Nothing here decides anything.

Limits of one process (queues, timeouts, retries) stand at the head of the module that keeps them.
"""

AMOUNT_MAX = 2**63 - 1  # one amount, so that every language's signed 64-bit integer can hold it
ID_CHARS_MAX = 96  # on the stream, with the edge's namespace in front
CALLER_ID_CHARS_MAX = 64  # what a caller may choose, without "/"
NAME_CHARS_MAX = 32  # a budget, a label, a unit, an option
LABEL_VALUE_CHARS_MAX = 128
LABELS_MAX = 16
UNITS_MAX = 16  # in a plan
ASK_UNITS_MAX = 8  # in one ask
OPTIONS_MAX = 8
BUDGETS_MAX = 64  # in a plan
TIERS_MAX = 16  # in a plan
TIER_COHORTS_MAX = 64  # with times of their own
TIER_TIMES_MAX = 100  # what thresholds may be multiplied by; past 100 % they end anyway
GUARDS_MAX = 16  # in a plan
GUARD_MORE_THAN_MAX = 1_000  # entries of one window
GUARD_S_MAX = 31 * 24 * 3600  # of a guard's window, and of the cooling it sets off
GUARD_VALUES_MAX = 250_000  # of its label that one guard watches; a new one beyond is not counted, none is evicted
GUARD_LETS_GO_MAX = 1_024  # windows of one guard freed at one ask message, so that none waits for a flood to be freed
GRADE_MAX = 100  # of a tier, and of an option at the edge
MATCHES_MAX = 16  # budgets that one hold may touch: keeps an outcome under 4 KiB
LOSS_METERS_MAX = 64  # that one loss vouches for: its outcome stays under 32 KiB
MEMO_CHARS_MAX = 8_192  # of what an edge keeps with an ask: 64 of them are one full message
TEXT_CHARS_MAX = 256  # a reason, a note, a link, who did it

MESSAGE_ASKS_MAX = 1_024
MESSAGE_BYTES_MAX = 512 * 1024
TOLD_MESSAGES_MAX = 64
TOLD_BYTES_MAX = 4 * 1024 * 1024  # past this a told takes no further message
LAPSES_MAX = 4_096  # that fall due before one ask message; the rest at the next
SEALS_MAX = 100  # in one entry: of 64 budgets 12 KB each at most, beside 4 MiB of outcomes and 2 of lapses

TTL_S_MIN = 1
TTL_S_MAX = 24 * 3600
TTL_S_DEFAULT = 600
HOLD_LIFE_S_MAX = 48 * 3600  # by renewals
REMEMBER_S_DEFAULT = 48 * 3600
REMEMBER_S_MAX = 31 * 24 * 3600
BY_AHEAD_S_MAX = 3600  # how long a caller may say it will wait: refusals are remembered that long

VISITS_ASK_PER_MINUTE = 10  # full questions of one visitor
VISITS_ESTIMATE_PER_MINUTE = 60  # estimates while one visitor types
VISITS_PER_MINUTE_MAX = 1_000_000  # what a config may say
VISIT_WAIT_MS_MAX = 60_000  # that a config may let a visit wait to be counted
VISITOR_BYTES_MAX = 32  # of the hash that stands for one visitor
VISITORS_MAX = 100_000  # of one minute, by kind: about 20 MB
