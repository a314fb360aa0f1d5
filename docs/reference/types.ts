// The bodies of Common Purse's HTTP API. Made by `make reference` from the OpenAPI document; a test compares.
// Amounts are decimal strings: keep them strings, or use a decimal library, never a float.

/** May I spend at most this? Either `amounts` or `options`, best first. */
export interface HoldBody {
  id?: string | null;
  amounts?: { [name: string]: string | number } | null;
  options?: OptionBody[] | null;
  labels?: { [name: string]: string };
  ttl_s?: number | null;
  on_lapse?: "charge" | "release" | null;
  wait_s?: number;
}

/** One way to make the call, and the most it could cost. `grade`: 0 is the best answer, larger ones are cheaper. */
export interface OptionBody {
  /** Unit -> amount. */
  amounts: { [name: string]: string | number };
  /** Unit -> amount. */
  least?: { [name: string]: string | number };
  grade?: number | null;
  name?: string;
}

/** Asks in order; each stands alone and sees the ones before it. If one cannot be read, none is sent. */
export interface BatchBody {
  asks: (BatchHold | BatchSettle | BatchRelease | BatchRenew | BatchObserve | BatchAdjust | BatchFreeze | BatchThaw | BatchRevoke | BatchRestore)[];
}

export interface BatchHold {
  ask: "hold";
  id?: string | null;
  amounts?: { [name: string]: string | number } | null;
  options?: OptionBody[] | null;
  labels?: { [name: string]: string };
  ttl_s?: number | null;
  on_lapse?: "charge" | "release" | null;
  wait_s?: number;
}

export interface BatchSettle {
  ask: "settle";
  id?: string | null;
  /** Unit -> amount. */
  amounts: { [name: string]: string | number };
  final?: boolean;
  estimated?: boolean;
  held_at?: string | null;
  labels?: { [name: string]: string };
  /** The caller's own id: the idempotency key. */
  hold: string;
}

export interface BatchRelease {
  ask: "release";
  /** The caller's own id: the idempotency key. */
  hold: string;
}

export interface BatchRenew {
  ask: "renew";
  n: number;
  ttl_s?: number | null;
  /** Unit -> amount. */
  amounts?: { [name: string]: string | number };
  /** The caller's own id: the idempotency key. */
  hold: string;
}

export interface BatchObserve {
  ask: "observe";
  id?: string | null;
  budget: string;
  /** An exact amount, best as a decimal string. A JSON number is read digit by digit. */
  figure: string | number;
  period?: string | null;
  as_of?: string | null;
  source?: string | null;
  each?: string | null;
}

export interface BatchAdjust {
  ask: "adjust";
  id?: string | null;
  budget: string;
  period: string;
  /** An exact amount, best as a decimal string. A JSON number is read digit by digit. */
  amount: string | number;
  reason: string;
  each?: string | null;
  hold?: string | null;
}

export interface BatchFreeze {
  ask: "freeze";
  id?: string | null;
  scope: string;
  reason: string;
  until?: string | null;
}

export interface BatchThaw {
  ask: "thaw";
  id?: string | null;
  scope: string;
  reason?: string;
}

export interface BatchRevoke {
  ask: "revoke";
  id?: string | null;
  label: string;
  value: string;
  reason: string;
}

export interface BatchRestore {
  ask: "restore";
  id?: string | null;
  label: string;
  value: string;
  reason?: string;
}

/** The call cost this. Zero must be said. `id` is the settle's own, if it needs one. */
export interface SettleBody {
  id?: string | null;
  /** Unit -> amount. */
  amounts: { [name: string]: string | number };
  final?: boolean;
  estimated?: boolean;
  held_at?: string | null;
  labels?: { [name: string]: string };
}

/** The call ended at what was reported so far, zero if nothing was. */
export interface ReleaseBody {
  [name: string]: never;
}

/** Hold on longer, maybe with a larger total. `n` counts 1, 2, ... */
export interface RenewBody {
  n: number;
  ttl_s?: number | null;
  /** Unit -> amount. */
  amounts?: { [name: string]: string | number };
}

/** A call as its provider takes it: `messages` or `input`, with the system prompt and tools that go with them. */
export interface EstimateBody {
  model: string;
  messages?: unknown[] | null;
  /** A text, several, tokens, or messages and items. */
  input?: unknown;
  /** A text, or parts. */
  system?: unknown;
  tools?: unknown[] | null;
  max_tokens?: number | null;
  n?: number;
  provider?: string;
}

/** The provider's own figure. `period` defaults to the current one, `as_of` to now, `source` to the budget's. */
export interface ObservationBody {
  id?: string | null;
  budget: string;
  /** An exact amount, best as a decimal string. A JSON number is read digit by digit. */
  figure: string | number;
  period?: string | null;
  as_of?: string | null;
  source?: string | null;
  each?: string | null;
}

/** A correction of what was settled, up or down. Its id is required: done twice it would count twice. */
export interface AdjustmentBody {
  id?: string | null;
  budget: string;
  period: string;
  /** An exact amount, best as a decimal string. A JSON number is read digit by digit. */
  amount: string | number;
  reason: string;
  each?: string | null;
  hold?: string | null;
}

/** Refuse new holds in a scope: `all`, a budget's name, or `label=value`. */
export interface FreezeBody {
  id?: string | null;
  scope: string;
  reason: string;
  until?: string | null;
}

/** Lift the freeze of exactly this scope. */
export interface ThawBody {
  id?: string | null;
  scope: string;
  reason?: string;
}

/** Refuse new holds that carry this label. */
export interface RevokeBody {
  id?: string | null;
  label: string;
  value: string;
  reason: string;
}

/** Undo a revocation. */
export interface RestoreBody {
  id?: string | null;
  label: string;
  value: string;
  reason?: string;
}

/** Decide by this plan from now on. `replaces` is the digest of the plan it was made from, "" for the first. */
export interface PlanBody {
  id?: string | null;
  /** The plan as in `purse.toml`, as JSON; `GET /v1/plan` shows one. */
  plan: { [name: string]: unknown };
  replaces: string;
}

/** A new key. With `replaces`, what is not said is as on that key, and so are the holds it speaks of. */
export interface KeyBody {
  role?: "admin" | "audit" | "observe" | "spend" | null;
  user?: string | null;
  cohort?: string | null;
  labels?: { [name: string]: string } | null;
  names?: string[] | null;
  expires_s?: number | null;
  replaces?: string | null;
  note?: string;
}

/** End a key, for this reason. */
export interface RevokeKeyBody {
  reason: string;
}

/** A test alert. `target` names one of those configured; without it all hear. */
export interface AlertTestBody {
  target?: string | null;
}

/**
 * The only permission to call. `option`: which of the options was granted, `amounts`: what it may cost.
 * `tier`: the least grade that was affordable, 0 also where no tiers judged it. `n`: which renewal this is.
 */
export interface HeldAnswer {
  outcome: "held";
  id: string;
  option: number;
  /** Unit -> amount. */
  amounts: { [name: string]: string };
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  expires_at: string;
  /** Budget -> the period it counts to. */
  periods: { [name: string]: string };
  tier: number;
  /** Budget -> amount of the budget's unit. */
  remaining: { [name: string]: string };
  receipt: Receipt;
  n?: number;
}

/** Proof of what was told: where the told stands on the record, and its chain. */
export interface Receipt {
  /** A sequence of the wallet's stream. */
  seq: number;
  chain: string;
}

/** One outcome for each ask, in their order, with the `status` that it would have had alone. */
export interface BatchAnswer {
  told: (BatchHeld | BatchSettled | BatchStray | BatchForgotten | BatchAgain | BatchObserved | BatchAdjusted | BatchAdjustedLate | BatchDone | SpentProblem | TierProblem | BusyProblem | NeverProblem | FrozenProblem | RevokedProblem | CoolingProblem | LateProblem | ClosedProblem | ConflictProblem | RefusedAskProblem | PlanlessProblem | UnknownProblem)[];
}

/** What became of one call. `seq`: the message in which it was held or came as a stray. */
export interface LifeAnswer {
  id: string;
  state: "corrected" | "estimated" | "lapsed" | "open" | "refused" | "settled" | "stray";
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  expires_at: string | null;
  /** Unit -> amount. */
  amounts: { [name: string]: string };
  /** Unit -> amount. */
  progress: { [name: string]: string };
  /** Unit -> amount. */
  charged: { [name: string]: string };
  periods: { [name: string]: string };
  /** A sequence of the wallet's stream. */
  seq: number;
}

/** What the call has cost. `again`: it was settled so before. `charged`: all of it, `released`: what came back. */
export interface SettledAnswer {
  outcome: "again" | "settled";
  id: string;
  state: "corrected" | "estimated" | "lapsed" | "open" | "refused" | "settled" | "stray";
  /** Unit -> amount. */
  charged: { [name: string]: string };
  /** Unit -> amount. */
  released: { [name: string]: string };
  /** Budget -> amount of the budget's unit. */
  remaining: { [name: string]: string };
  /** Budget -> percent of its limit. */
  used_pct: { [name: string]: number };
  flags: ("corrected" | "estimated" | "late" | "overrun" | "unheld" | "unreported")[];
  receipt: Receipt;
  dropped?: DroppedCharge[];
}

/**
 * A charge to a period older than the memory: it counts to that period all the same. `amount`: null where the
 * budget is of no plan that this process has seen.
 */
export interface DroppedCharge {
  budget: string;
  period: string;
  amount: string | null;
}

/** A settlement of a hold nobody knows: charged all the same. `state`: "estimated" while it is provisional. */
export interface StrayAnswer {
  outcome: "stray";
  id: string;
  state: "corrected" | "estimated" | "lapsed" | "open" | "refused" | "settled" | "stray";
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  /** Unit -> amount. */
  charged: { [name: string]: string };
  /** Unit -> amount. */
  released: { [name: string]: string };
  /** Budget -> amount of the budget's unit. */
  remaining: { [name: string]: string };
  /** Budget -> percent of its limit. */
  used_pct: { [name: string]: number };
  flags: ("corrected" | "estimated" | "late" | "overrun" | "unheld" | "unreported")[];
  receipt: Receipt;
  dropped?: DroppedCharge[];
}

/** A settlement of a hold older than the memory: nothing is charged here, a backfill lists it. The rest is empty. */
export interface ForgottenAnswer {
  outcome: "forgotten";
  id: string;
  /** Unit -> amount. */
  charged: { [name: string]: string };
  /** Unit -> amount. */
  released: { [name: string]: string };
  /** Budget -> amount of the budget's unit. */
  remaining: { [name: string]: string };
  /** Budget -> percent of its limit. */
  used_pct: { [name: string]: number };
  flags: ("corrected" | "estimated" | "late" | "overrun" | "unheld" | "unreported")[];
  receipt: Receipt;
}

/** Without a key: whether it would fit, and shares. `cost_pct`: what it could take of each budget's limit. */
export interface EstimateShares {
  fits: boolean;
  /** Budget -> percent of its limit. */
  cost_pct: { [name: string]: number };
  /** Budget -> percent of its limit. */
  used_pct_after: { [name: string]: number };
}

/**
 * `affordable_max_tokens`: the largest cap with which it would fit, 0 if not even the input does, null without a
 * cap. `max_tokens`: the cap that was reckoned with. `price_book`: the digest of the prices.
 */
export interface EstimateAnswer {
  fits: boolean;
  /** Budget -> percent of its limit. */
  cost_pct: { [name: string]: number };
  /** Budget -> percent of its limit. */
  used_pct_after: { [name: string]: number };
  /** Unit -> amount. */
  amounts: { [name: string]: string };
  affordable_max_tokens: number | null;
  provider: string;
  model: string;
  input_tokens_max: number;
  max_tokens: number;
  price_book: string;
}

/**
 * The figure counts. `raised_by`: by how much what counts as used rose, maybe 0.
 * Amounts are null for a budget of no plan that this process has seen.
 */
export interface ObservedAnswer {
  outcome: "observed";
  id: string;
  raised_by: string | null;
  budget: string;
  period: string;
  limit: string | null;
  remaining: string | null;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  receipt: Receipt;
}

/** It was told before; what was told then is not kept word for word. `state`: of the hold it was about. */
export interface AgainAnswer {
  outcome: "again";
  id: string;
  receipt: Receipt;
  state?: string;
}

/** The correction counts, and this is how the budget stands now. */
export interface AdjustedAnswer {
  outcome: "adjusted";
  id: string;
  budget: string;
  period: string;
  limit: string | null;
  remaining: string | null;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  receipt: Receipt;
}

/** The correction is of a period older than the memory: it is on record and counts to that period. */
export interface AdjustedLateAnswer {
  outcome: "adjusted";
  id: string;
  budget: string;
  period: string;
  dropped: true;
  receipt: Receipt;
}

/** It is so from here on. */
export interface DoneAnswer {
  outcome: "done";
  id: string;
  receipt: Receipt;
}

/** The plan in force as `purse.toml` would say it, every default said; its digest is what the next one replaces. */
export interface PlanAnswer {
  plan: { [name: string]: unknown };
  digest: string;
}

/** The plan is in force. `restarts`: the budgets whose meters start at zero by it. */
export interface PlannedAnswer {
  outcome: "planned";
  id: string;
  digest: string;
  restarts: string[];
  receipt: Receipt;
}

/** `key` is the key itself: here, and never again. */
export interface KeyMade {
  id: string;
  role: "admin" | "audit" | "observe" | "spend";
  state: "active" | "expired" | "revoked";
  user: string;
  cohort: string;
  labels: { [name: string]: string };
  names: string[];
  namespace: string;
  replaces: string;
  note: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  made_by: string;
  revoked_by: string;
  reason: string;
  key: string;
}

/** All keys, the newest first. */
export interface KeysAnswer {
  keys: KeyShown[];
}

/** All that is kept of a key but its hash. */
export interface KeyShown {
  id: string;
  role: "admin" | "audit" | "observe" | "spend";
  state: "active" | "expired" | "revoked";
  user: string;
  cohort: string;
  labels: { [name: string]: string };
  names: string[];
  namespace: string;
  replaces: string;
  note: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  made_by: string;
  revoked_by: string;
  reason: string;
}

/** The key as it is now, and what was told of the revocation. */
export interface KeyRevoked {
  id: string;
  role: "admin" | "audit" | "observe" | "spend";
  state: "active" | "expired" | "revoked";
  user: string;
  cohort: string;
  labels: { [name: string]: string };
  names: string[];
  namespace: string;
  replaces: string;
  note: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  made_by: string;
  revoked_by: string;
  reason: string;
  outcome: "again" | "done";
  receipt: Receipt;
}

/**
 * The shared budgets as of one sequence. `live`: no older than a few seconds. `open_earlier`: calls of an
 * earlier period that are still being settled, and count to that.
 */
export interface StatusAnswer {
  wallet: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  as_of: string;
  /** A sequence of the wallet's stream. */
  seq: number;
  live: boolean;
  frozen: FreezeShown | null;
  budgets: BudgetShown[];
  open_earlier: number;
}

/** A freeze in force; `until`: null until it is lifted. */
export interface FreezeShown {
  scope: string;
  reason: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  since: string;
  until: string | null;
}

/** One shared budget now. Amounts, all or none of them: to operators, and where the plan says `amounts`. */
export interface BudgetShown {
  name: string;
  unit: string;
  per: "day" | "hour" | "minute" | "month" | "total" | "week" | "year";
  zone: string;
  period: string;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  held_pct: number;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  settled_pct: number;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  extra_pct: number;
  /** RFC 3339, UTC, cut to the millisecond. */
  starts_at: string;
  resets_at: string | null;
  first_exhausted_at: string | null;
  observed: ObservedFigure | null;
  reading: ReadingShown | null;
  /** An exact amount of its unit, as a decimal string. */
  limit?: string;
  /** An exact amount of its unit, as a decimal string. */
  settled?: string;
  /** An exact amount of its unit, as a decimal string. */
  held?: string;
  /** An exact amount of its unit, as a decimal string. */
  extra?: string;
  /** An exact amount of its unit, as a decimal string. */
  used?: string;
  /** An exact amount of its unit, as a decimal string. */
  remaining?: string;
  note?: string;
  link?: string;
}

/** The provider's own figure, and when it said so. `figure`: where amounts are shown. */
export interface ObservedFigure {
  source: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  as_of: string;
  /** An exact amount of its unit, as a decimal string. */
  figure?: string;
}

/**
 * How the reader of that figure fares. `stale`: since `read_at` the wallet counts its own calls alone. `why`: to
 * operators, why the newest try gave none.
 */
export interface ReadingShown {
  source: string;
  read_at: string | null;
  every_s: number;
  stale: boolean;
  unreadable: boolean;
  why?: string;
}

/** To a key with the role audit or admin: also what strangers do not see. */
export interface OperatorStatus {
  wallet: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  as_of: string;
  /** A sequence of the wallet's stream. */
  seq: number;
  live: boolean;
  frozen: FreezeShown | null;
  budgets: BudgetShown[];
  open_earlier: number;
  plan: string;
  open_holds: number;
  freezes: FreezeShown[];
  barred: BarredShown[];
  barred_more: number;
  alerts: AlertAtAGlance[];
}

/** A label's value that takes no new holds; `guard`: which one went off, "" if it was revoked. */
export interface BarredShown {
  label: string;
  value: string;
  reason: string;
  guard: string;
  until: string | null;
}

/** `delivered`: every target has taken it. */
export interface AlertAtAGlance {
  id: string;
  text: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  delivered: boolean;
}

/** Every period of each shared budget, the newest first. */
export interface DaysAnswer {
  days: PeriodTotals[];
}

/**
 * What one shared budget came to in one period, up to sequence `seq`. Counts are of outcomes that touched it.
 * `wasted`: granted to holds that have ended, and not spent. `unreconciled`: by how much exact settlements that
 * came too late differ from what is charged.
 */
export interface PeriodTotals {
  budget: string;
  unit: string;
  period: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  starts_at: string;
  ends_at: string | null;
  /** An exact amount of its unit, as a decimal string. */
  limit: string;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  held: string;
  /** An exact amount of its unit, as a decimal string. */
  extra: string;
  /** An exact amount of its unit, as a decimal string. */
  used: string;
  /** An exact amount of its unit, as a decimal string. */
  remaining: string;
  /** An exact amount of its unit, as a decimal string. */
  peak: string;
  /** An exact amount of its unit, as a decimal string. */
  wasted: string;
  /** An exact amount of its unit, as a decimal string. */
  adjusted: string;
  /** An exact amount of its unit, as a decimal string. */
  unreconciled: string;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  peak_at: string | null;
  first_exhausted_at: string | null;
  holds: number;
  open_holds: number;
  settles: number;
  /** Why -> how many. */
  refused: { [name: string]: number };
  overruns: number;
  strays: number;
  lapsed: number;
  late: number;
  unheld: number;
  unreported: number;
  corrected: number;
  estimated: number;
  conflicts: number;
  unreconciled_holds: number;
  sealed: SealShown | null;
  after_seal: AfterSeal;
  /** A sequence of the wallet's stream. */
  seq: number;
}

/** The seal of a day: where it stands, and when it was told. */
export interface SealShown {
  day: string;
  /** A sequence of the wallet's stream. */
  seq: number;
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
}

/** By how much these changed since the seal. */
export interface AfterSeal {
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  extra: string;
}

/** A day with all its budgets. `decided`: where it is a day of the wallet on which something was decided. */
export interface DayAnswer {
  day: string;
  sealed: SealShown | null;
  budgets: DayBudget[];
  decided?: DayDecided;
}

/** A budget in a period of that name, where it is known with who spent it (by label) and its course. */
export interface DayBudget {
  budget: string;
  unit: string;
  period: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  starts_at: string;
  ends_at: string | null;
  /** An exact amount of its unit, as a decimal string. */
  limit: string;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  held: string;
  /** An exact amount of its unit, as a decimal string. */
  extra: string;
  /** An exact amount of its unit, as a decimal string. */
  used: string;
  /** An exact amount of its unit, as a decimal string. */
  remaining: string;
  /** An exact amount of its unit, as a decimal string. */
  peak: string;
  /** An exact amount of its unit, as a decimal string. */
  wasted: string;
  /** An exact amount of its unit, as a decimal string. */
  adjusted: string;
  /** An exact amount of its unit, as a decimal string. */
  unreconciled: string;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  peak_at: string | null;
  first_exhausted_at: string | null;
  holds: number;
  open_holds: number;
  settles: number;
  /** Why -> how many. */
  refused: { [name: string]: number };
  overruns: number;
  strays: number;
  lapsed: number;
  late: number;
  unheld: number;
  unreported: number;
  corrected: number;
  estimated: number;
  conflicts: number;
  unreconciled_holds: number;
  sealed: SealShown | null;
  after_seal: AfterSeal;
  /** A sequence of the wallet's stream. */
  seq: number;
  by?: { [name: string]: BreakdownShown };
  series?: SeriesShown | null;
  more_labels?: boolean;
}

/** The values with most settled, and the rest: together they are the total. */
export interface BreakdownShown {
  top: SpentShown[];
  other: OtherShown;
}

/** One value of a label; null: calls without that label. */
export interface SpentShown {
  value: string | null;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  holds: number;
  refused: number;
}

/** All other values together: so many, and `uncounted` where there are still more. */
export interface OtherShown {
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  holds: number;
  refused: number;
  values: number;
  uncounted: boolean;
}

/** How it went. Steps in which nothing happened have no point; `before`: the steps that were too many to keep. */
export interface SeriesShown {
  step_s: number;
  before: PointShown | null;
  points: PointShown[];
}

/** One step of a series from `at` on: what was settled in it, and what was held as it ended. */
export interface PointShown {
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  held: string;
  holds: number;
  refused: number;
}

/** What was decided on a day of the wallet and is of no one budget. */
export interface DayDecided {
  refused: { [name: string]: number };
  conflicts: number;
  invalid: number;
  unknown: number;
  forgotten: number;
}

/**
 * One outcome, or one lapse. `seq`: of its ask message; `told`: of the told that has it.
 * `amounts`: granted, charged, shown or adjusted; of a refused hold what it asked for. What is empty is left
 * out.
 */
export interface DecisionLine {
  /** A sequence of the wallet's stream. */
  seq: number;
  /** A sequence of the wallet's stream. */
  told: number;
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  /** The ask, "lapse", or "" where the message could not be read. */
  kind: string;
  outcome: string;
  id: string;
  /** Unit -> amount. */
  amounts: { [name: string]: string };
  why?: string;
  budget?: string;
  state?: string;
  flags?: string[];
}

/**
 * The wallet after every message up to `at`. `start`: the told of the snapshot it was read from, 0 for none.
 * `more`: meters beyond those shown. `due`: open holds that were past their expiry. `revoked`: `label=value`.
 */
export interface MomentAnswer {
  /** RFC 3339, UTC, to the second. */
  at: string;
  wallet: string;
  /** A sequence of the wallet's stream. */
  upto: number;
  /** A sequence of the wallet's stream. */
  told: number;
  chain: string | "";
  /** A sequence of the wallet's stream. */
  start: number;
  plan: string;
  budgets: MeterThen[];
  more: number;
  open_holds: number;
  due: number;
  frozen: FreezeThen[];
  revoked: string[];
}

/** One budget, or one value's meter of it (`each`), as it stood. */
export interface MeterThen {
  budget: string;
  each: string | null;
  period: string;
  unit: string;
  /** An exact amount of its unit, as a decimal string. */
  limit: string;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  held: string;
  /** An exact amount of its unit, as a decimal string. */
  extra: string;
  /** An exact amount of its unit, as a decimal string. */
  used: string;
  /** An exact amount of its unit, as a decimal string. */
  remaining: string;
}

/** A freeze that was in force. */
export interface FreezeThen {
  scope: string;
  reason: string;
  /** RFC 3339, UTC, to the second. */
  since: string;
  until: string | null;
}

/**
 * What names a call behind sequence `after` up to `upto`; `end`: the last there was. `more`: events left out.
 * `state`: null where the wallet does not remember the call.
 */
export interface EventsAnswer {
  id: string;
  state: "corrected" | "estimated" | "lapsed" | "open" | "refused" | "settled" | "stray" | null;
  events: EventShown[];
  more: number;
  /** A sequence of the wallet's stream. */
  after: number;
  /** A sequence of the wallet's stream. */
  upto: number;
  /** A sequence of the wallet's stream. */
  end: number;
}

/** One thing that happened to a call; `ask` is null where it lapsed. `at_ns`: `at` exactly, ns since 1970. */
export interface EventShown {
  /** A sequence of the wallet's stream. */
  seq: number;
  /** RFC 3339, UTC, to the second. */
  at: string;
  receipt: Receipt;
  ask: AskOnRecord | null;
  outcome: OutcomeOnRecord;
  at_ns: number;
}

/** An ask as it stands on the stream, amounts as decimal strings: its other members are those of the ask. */
export interface AskOnRecord {
  ask: string;
  [name: string]: unknown;
}

/** An outcome as it stands on the stream, amounts as decimal strings: its other members are those of the outcome. */
export interface OutcomeOnRecord {
  outcome: string;
  [name: string]: unknown;
}

/** The newest alerts, the newest first. */
export interface AlertsAnswer {
  alerts: AlertAnswer[];
}

/** One alert. `figures` are amounts of `unit`; `deliveries`: what became of it at each target. */
export interface AlertAnswer {
  id: string;
  rule: string;
  budget: string;
  period: string;
  threshold: string;
  unit: string;
  figures: { [name: string]: string };
  text: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  /** A sequence of the wallet's stream. */
  seq: number;
  deliveries: { [name: string]: "missed" | "new" | "sending" | "sent" | "waiting" };
}

/** What each target answered. */
export interface AlertTestAnswer {
  targets: TargetTried[];
}

/** What a target did with a test alert; `why`: how it failed. */
export interface TargetTried {
  target: string;
  delivered: boolean;
  why?: string;
}

/** This process answers. */
export interface LiveAnswer {
  live: true;
}

/** A hold would be decided. With `?verbose` also what was looked at, and how many settlements wait on disk here. */
export interface ReadyAnswer {
  ready: true;
  checks?: ChecksWell;
  spool_depth?: number;
}

/** All is well. */
export interface ChecksWell {
  engine: true;
  projector: true;
  plan: true;
  web: true;
}

/** An OpenAPI document. */
export interface DocumentAnswer {
  openapi: string;
  info: { [name: string]: unknown };
  paths: { [name: string]: unknown };
  components: { [name: string]: unknown };
  [name: string]: unknown;
}

export interface BatchHeld {
  outcome: "held";
  id: string;
  option: number;
  /** Unit -> amount. */
  amounts: { [name: string]: string };
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  expires_at: string;
  /** Budget -> the period it counts to. */
  periods: { [name: string]: string };
  tier: number;
  /** Budget -> amount of the budget's unit. */
  remaining: { [name: string]: string };
  receipt: Receipt;
  n?: number;
  status: 200 | 201;
}

export interface BatchSettled {
  outcome: "again" | "settled";
  id: string;
  state: "corrected" | "estimated" | "lapsed" | "open" | "refused" | "settled" | "stray";
  /** Unit -> amount. */
  charged: { [name: string]: string };
  /** Unit -> amount. */
  released: { [name: string]: string };
  /** Budget -> amount of the budget's unit. */
  remaining: { [name: string]: string };
  /** Budget -> percent of its limit. */
  used_pct: { [name: string]: number };
  flags: ("corrected" | "estimated" | "late" | "overrun" | "unheld" | "unreported")[];
  receipt: Receipt;
  dropped?: DroppedCharge[];
  status: 200;
}

export interface BatchStray {
  outcome: "stray";
  id: string;
  state: "corrected" | "estimated" | "lapsed" | "open" | "refused" | "settled" | "stray";
  /** RFC 3339, UTC, cut to the millisecond. */
  at: string;
  /** Unit -> amount. */
  charged: { [name: string]: string };
  /** Unit -> amount. */
  released: { [name: string]: string };
  /** Budget -> amount of the budget's unit. */
  remaining: { [name: string]: string };
  /** Budget -> percent of its limit. */
  used_pct: { [name: string]: number };
  flags: ("corrected" | "estimated" | "late" | "overrun" | "unheld" | "unreported")[];
  receipt: Receipt;
  dropped?: DroppedCharge[];
  status: 200;
}

export interface BatchForgotten {
  outcome: "forgotten";
  id: string;
  /** Unit -> amount. */
  charged: { [name: string]: string };
  /** Unit -> amount. */
  released: { [name: string]: string };
  /** Budget -> amount of the budget's unit. */
  remaining: { [name: string]: string };
  /** Budget -> percent of its limit. */
  used_pct: { [name: string]: number };
  flags: ("corrected" | "estimated" | "late" | "overrun" | "unheld" | "unreported")[];
  receipt: Receipt;
  status: 200;
}

export interface BatchAgain {
  outcome: "again";
  id: string;
  receipt: Receipt;
  state?: string;
  status: 200;
}

export interface BatchObserved {
  outcome: "observed";
  id: string;
  raised_by: string | null;
  budget: string;
  period: string;
  limit: string | null;
  remaining: string | null;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  receipt: Receipt;
  status: 200;
}

export interface BatchAdjusted {
  outcome: "adjusted";
  id: string;
  budget: string;
  period: string;
  limit: string | null;
  remaining: string | null;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  receipt: Receipt;
  status: 200;
}

export interface BatchAdjustedLate {
  outcome: "adjusted";
  id: string;
  budget: string;
  period: string;
  dropped: true;
  receipt: Receipt;
  status: 200;
}

export interface BatchDone {
  outcome: "done";
  id: string;
  receipt: Receipt;
  status: 200;
}

/** Used up until `resets_at`. The status is the operator's choice, 402 unless said (`refusal_status`). */
export interface SpentProblem {
  type: "/problems/exhausted";
  title: string;
  status: 402 | 403 | 429;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "exhausted";
  why: "spent";
  budget: string;
  unit: string;
  period: string;
  /** An exact amount of its unit, as a decimal string. */
  limit: string;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  held: string;
  /** An exact amount of its unit, as a decimal string. */
  extra: string;
  /** An exact amount of its unit, as a decimal string. */
  remaining: string;
  /** An exact amount of its unit, as a decimal string. */
  fits: string;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  /** Null: never, the budget is for good. */
  resets_at: string | null;
  each?: string;
  note?: string;
  link?: string;
}

/** Only cheaper answers are left: `tier` is the least grade still affordable, null where none is. */
export interface TierProblem {
  type: "/problems/exhausted";
  title: string;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "exhausted";
  budget: string;
  unit: string;
  period: string;
  /** An exact amount of its unit, as a decimal string. */
  limit: string;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  held: string;
  /** An exact amount of its unit, as a decimal string. */
  extra: string;
  /** An exact amount of its unit, as a decimal string. */
  remaining: string;
  /** An exact amount of its unit, as a decimal string. */
  fits: string;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  /** Null: never, the budget is for good. */
  resets_at: string | null;
  each?: string;
  note?: string;
  link?: string;
  status: 402 | 403 | 429;
  why: "tier";
  tier: number | null;
}

/** Only calls in progress are in the way: trying again helps once they end. */
export interface BusyProblem {
  type: "/problems/exhausted";
  title: string;
  status: 429;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "exhausted";
  why: "busy";
  budget: string;
  unit: string;
  period: string;
  /** An exact amount of its unit, as a decimal string. */
  limit: string;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  held: string;
  /** An exact amount of its unit, as a decimal string. */
  extra: string;
  /** An exact amount of its unit, as a decimal string. */
  remaining: string;
  /** An exact amount of its unit, as a decimal string. */
  fits: string;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  /** Null: never, the budget is for good. */
  resets_at: string | null;
  each?: string;
  note?: string;
  link?: string;
}

/** Larger than the whole budget. */
export interface NeverProblem {
  type: "/problems/exhausted";
  title: string;
  status: 400;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "exhausted";
  why: "never";
  budget: string;
  unit: string;
  period: string;
  /** An exact amount of its unit, as a decimal string. */
  limit: string;
  /** An exact amount of its unit, as a decimal string. */
  settled: string;
  /** An exact amount of its unit, as a decimal string. */
  held: string;
  /** An exact amount of its unit, as a decimal string. */
  extra: string;
  /** An exact amount of its unit, as a decimal string. */
  remaining: string;
  /** An exact amount of its unit, as a decimal string. */
  fits: string;
  /** Percent of the limit to a tenth, cut: 100 only where nothing is left. */
  used_pct: number;
  /** Null: never, the budget is for good. */
  resets_at: string | null;
  each?: string;
  note?: string;
  link?: string;
}

/** An operator stopped spending in this scope; `until`: null until it is lifted. */
export interface FrozenProblem {
  type: "/problems/frozen";
  title: string;
  status: 403;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "frozen";
  scope: string;
  reason: string;
  until: string | null;
}

/** New holds with this label's value are refused. */
export interface RevokedProblem {
  type: "/problems/revoked";
  title: string;
  status: 403;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "revoked";
  label: string;
  reason: string;
}

/** A guard refuses this label's value for so many seconds. */
export interface CoolingProblem {
  type: "/problems/cooling";
  title: string;
  status: 429;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "cooling";
  label: string;
  /** RFC 3339, UTC, cut to the millisecond. */
  until: string;
  seconds: number;
}

/** Decided after its caller stopped waiting. Nothing was held. */
export interface LateProblem {
  type: "/problems/late";
  title: string;
  status: 503;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "late";
  /** RFC 3339, UTC, cut to the millisecond. */
  by: string;
}

/** The hold has ended: no permission to call. */
export interface ClosedProblem {
  type: "/problems/closed";
  title: string;
  status: 409;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "closed";
  state: "corrected" | "estimated" | "lapsed" | "open" | "refused" | "settled" | "stray";
  /** Unit -> amount. */
  charged: { [name: string]: string };
}

/** The id stands for something else; `field` differs. For a settle, `charged` is what stands. */
export interface ConflictProblem {
  type: "/problems/conflict";
  title: string;
  status: 422;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "conflict";
  field: string;
  /** Unit -> amount. */
  charged?: { [name: string]: string };
}

/** The engine found what the edge could not: the ask names what does not exist. Nothing changed. */
export interface RefusedAskProblem {
  type: "/problems/invalid";
  title: string;
  status: 400;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "invalid";
  field: string;
  why: string;
}

/** The wallet has no plan yet, by the engine's word. */
export interface PlanlessProblem {
  type: "/problems/invalid";
  title: string;
  status: 503;
  detail: string;
  outcome: "invalid";
  why: "no_plan";
  receipt: Receipt;
}

/** The wallet does not know this hold, or has forgotten it. */
export interface UnknownProblem {
  type: "/problems/unknown";
  title: string;
  status: 404;
  detail: string;
  outcome: "unknown";
  id: string;
  receipt?: Receipt;
}

/** A key is needed, and none was brought. */
export interface NoKeyProblem {
  type: "/problems/no-key";
  title: string;
  status: 401;
  detail: string;
}

/** A key with this role may not do this. */
export interface RoleProblem {
  type: "/problems/role";
  title: string;
  status: 403;
  detail: string;
}

/** `field` is a JSON path, or a header's or parameter's name; `why` says what is allowed there. */
export interface InvalidProblem {
  type: "/problems/invalid";
  title: string;
  status: 400;
  detail: string;
  outcome: "invalid";
  field: string;
  why: string;
}

/** The body is no JSON; where, if it can be said. */
export interface BrokenJsonProblem {
  type: "/problems/broken-json";
  title: string;
  status: 400;
  detail: string;
  field: "body";
  line?: number;
  column?: number;
}

/** The body did not arrive whole. */
export interface BrokenBodyProblem {
  type: "/problems/broken-body";
  title: string;
  status: 400;
  detail: string;
  field: "body";
}

/** The body came too slowly. */
export interface TooSlowProblem {
  type: "/problems/too-slow";
  title: string;
  status: 408;
  detail: string;
}

/** The body, or what it asks for, is larger than the limit that `detail` names. */
export interface TooLargeProblem {
  type: "/problems/too-large";
  title: string;
  status: 413;
  detail: string;
}

/** The body is not `application/json` in UTF-8, or is encoded. */
export interface NotJsonProblem {
  type: "/problems/not-json";
  title: string;
  status: 415;
  detail: string;
}

/** Too many are asking, or reading, at this moment. */
export interface OverloadedProblem {
  type: "/problems/overloaded";
  title: string;
  status: 503;
  detail: string;
}

/** The wallet has no plan yet. */
export interface NoPlanProblem {
  type: "/problems/no-plan";
  title: string;
  status: 503;
  detail: string;
}

/** The key that was brought is none of this wallet's. */
export interface WrongKeyProblem {
  type: "/problems/wrong-key";
  title: string;
  status: 401;
  detail: string;
}

/** The key was revoked or has expired. It may still settle, release and look at the holds it opened. */
export interface KeyEndedProblem {
  type: "/problems/key-ended";
  title: string;
  status: 403;
  detail: string;
}

/** Our error, and no permission. */
export interface InternalProblem {
  type: "/problems/internal";
  title: string;
  status: 500;
  detail: string;
}

/** No answer in time. `spooled`: what was settled is kept and will count. */
export interface NoAnswerProblem {
  type: "/problems/no-answer";
  title: string;
  status: 503;
  detail: string;
  spooled?: true;
}

/** Neither the stream nor the disk took this: send it again. */
export interface NotKeptProblem {
  type: "/problems/not-kept";
  title: string;
  status: 503;
  detail: string;
}

/** The stream did not take this. */
export interface StreamRefusedProblem {
  type: "/problems/stream-refused";
  title: string;
  status: 503;
  detail: string;
}

/** The wallet cannot be trusted now: an operator has to look at it. */
export interface UntrustedProblem {
  type: "/problems/untrusted";
  title: string;
  status: 503;
  detail: string;
}

/** The model has no price here, so what it could cost is not known. */
export interface NotPricedProblem {
  type: "/problems/model-not-priced";
  title: string;
  status: 400;
  detail: string;
  outcome: "model_not_priced";
  field: "model";
}

/** A stranger comes too often; `seconds` says when to come again. */
export interface SlowDownProblem {
  type: "/problems/slow-down";
  title: string;
  status: 429;
  detail: string;
  seconds: number;
}

/** The projector has no figures yet. */
export interface NoStatusProblem {
  type: "/problems/no-status";
  title: string;
  status: 503;
  detail: string;
}

/** The plan changed meanwhile: `replaces` is not the digest of the one in force. */
export interface PlanConflictProblem {
  type: "/problems/conflict";
  title: string;
  status: 409;
  detail: string;
  id: string;
  receipt: Receipt;
  outcome: "conflict";
  field: string;
}

/** A wallet has only so many keys. */
export interface TooManyKeysProblem {
  type: "/problems/too-many-keys";
  title: string;
  status: 409;
  detail: string;
}

/** Nothing is there; `day` or `id`: what was looked for. */
export interface NotFoundProblem {
  type: "/problems/not-found";
  title: string;
  status: 404;
  detail: string;
  day?: string;
  id?: string;
}

/** Too many watch the live stream. */
export interface TooManyViewersProblem {
  type: "/problems/too-many-viewers";
  title: string;
  status: 503;
  detail: string;
}

/** What is on record contradicts itself, so it is not shown. */
export interface NotTrustedProblem {
  type: "/problems/not-trusted";
  title: string;
  status: 503;
  detail: string;
}

/** It would take too long to read up to this moment. */
export interface TooFarProblem {
  type: "/problems/too-far";
  title: string;
  status: 503;
  detail: string;
}

/** No target of that name, or no projector that sends alerts. */
export interface NoTargetProblem {
  type: "/problems/no-target";
  title: string;
  status: 404;
  detail: string;
}

/** A hold would not be decided now; `checks` says what is missing. */
export interface NotReadyProblem {
  type: "/problems/not-ready";
  title: string;
  status: 503;
  detail: string;
  ready: false;
  checks: ReadyChecks;
  spool_depth: number;
}

/** What was looked at, and whether it is well. */
export interface ReadyChecks {
  engine: boolean;
  projector: boolean;
  plan: boolean;
  web: boolean;
}

/** The address takes other methods; `Allow` names them. */
export interface MethodProblem {
  type: "/problems/method-not-allowed";
  title: string;
  status: 405;
  detail: string;
}

/** Every route: what it takes, and what it answers by status. */
export interface Routes {
  "POST /v1/holds": {
    body: HoldBody;
    answers: {
      200: HeldAnswer;
      201: HeldAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | NeverProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      402: SpentProblem | TierProblem;
      403: RoleProblem | SpentProblem | TierProblem | FrozenProblem | RevokedProblem | KeyEndedProblem;
      408: TooSlowProblem;
      409: ClosedProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      429: SpentProblem | TierProblem | BusyProblem | CoolingProblem;
      500: InternalProblem;
      503: OverloadedProblem | LateProblem | PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/holds:batch": {
    body: BatchBody;
    answers: {
      200: BatchAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      500: InternalProblem;
      503: OverloadedProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/holds/{id}": {
    answers: {
      200: LifeAnswer;
      400: InvalidProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      404: UnknownProblem;
      500: InternalProblem;
      503: NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/holds/{id}/settle": {
    body: SettleBody;
    answers: {
      200: SettledAnswer | StrayAnswer | ForgottenAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: OverloadedProblem | PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/holds/{id}/release": {
    body?: ReleaseBody;
    answers: {
      200: SettledAnswer | StrayAnswer | ForgottenAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: OverloadedProblem | PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/holds/{id}/renew": {
    body: RenewBody;
    answers: {
      200: HeldAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | NeverProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      402: SpentProblem | TierProblem;
      403: RoleProblem | SpentProblem | TierProblem | FrozenProblem | RevokedProblem | KeyEndedProblem;
      404: UnknownProblem;
      408: TooSlowProblem;
      409: ClosedProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      429: SpentProblem | TierProblem | BusyProblem | CoolingProblem;
      500: InternalProblem;
      503: OverloadedProblem | LateProblem | PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/estimate": {
    body: EstimateBody;
    answers: {
      200: EstimateShares | EstimateAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | NotPricedProblem;
      401: WrongKeyProblem;
      403: KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      429: SlowDownProblem;
      500: InternalProblem;
      503: OverloadedProblem | NoPlanProblem | NoStatusProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/observations": {
    body: ObservationBody;
    answers: {
      200: ObservedAnswer | AgainAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: OverloadedProblem | PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/adjustments": {
    body: AdjustmentBody;
    answers: {
      200: AdjustedAnswer | AdjustedLateAnswer | AgainAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/freeze": {
    body: FreezeBody;
    answers: {
      200: DoneAnswer | AgainAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/thaw": {
    body: ThawBody;
    answers: {
      200: DoneAnswer | AgainAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/revoke": {
    body: RevokeBody;
    answers: {
      200: DoneAnswer | AgainAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/restore": {
    body: RestoreBody;
    answers: {
      200: DoneAnswer | AgainAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/plan": {
    answers: {
      200: PlanAnswer;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      500: InternalProblem;
      503: NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/plan": {
    body: PlanBody;
    answers: {
      200: PlannedAnswer | AgainAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      409: PlanConflictProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/keys": {
    body: KeyBody;
    answers: {
      201: KeyMade;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      408: TooSlowProblem;
      409: TooManyKeysProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/keys": {
    answers: {
      200: KeysAnswer;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/keys/{id}/revoke": {
    body: RevokeKeyBody;
    answers: {
      200: KeyRevoked;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem | RefusedAskProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      404: NotFoundProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      422: ConflictProblem;
      500: InternalProblem;
      503: PlanlessProblem | NoPlanProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/status": {
    answers: {
      200: StatusAnswer | OperatorStatus;
      401: WrongKeyProblem;
      403: KeyEndedProblem;
      500: InternalProblem;
      503: NoStatusProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/status/stream": {
    answers: {
      200: StatusAnswer | OperatorStatus;
      401: WrongKeyProblem;
      403: KeyEndedProblem;
      500: InternalProblem;
      503: TooManyViewersProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/days": {
    answers: {
      200: DaysAnswer;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/days/{day}": {
    answers: {
      200: DayAnswer;
      400: InvalidProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      404: NotFoundProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/days/{day}/events": {
    answers: {
      200: DecisionLine;
      400: InvalidProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      404: NotFoundProblem;
      500: InternalProblem;
      503: OverloadedProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/days/{day}/at": {
    answers: {
      200: MomentAnswer;
      400: InvalidProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      404: NotFoundProblem;
      500: InternalProblem;
      503: NoPlanProblem | OverloadedProblem | NotTrustedProblem | TooFarProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/holds/{id}/events": {
    answers: {
      200: EventsAnswer;
      400: InvalidProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      404: NotFoundProblem;
      500: InternalProblem;
      503: NoPlanProblem | OverloadedProblem | NotTrustedProblem | TooFarProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /v1/alerts": {
    answers: {
      200: AlertsAnswer;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "POST /v1/alerts/test": {
    body?: AlertTestBody;
    answers: {
      200: AlertTestAnswer;
      400: InvalidProblem | BrokenJsonProblem | BrokenBodyProblem;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      404: NoTargetProblem;
      408: TooSlowProblem;
      413: TooLargeProblem;
      415: NotJsonProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /livez": {
    answers: {
      200: LiveAnswer;
      401: WrongKeyProblem;
      403: KeyEndedProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /readyz": {
    answers: {
      200: ReadyAnswer;
      401: WrongKeyProblem;
      403: KeyEndedProblem;
      500: InternalProblem;
      503: NotReadyProblem | NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /metrics": {
    answers: {
      200: string;
      401: NoKeyProblem | WrongKeyProblem;
      403: RoleProblem | KeyEndedProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
  "GET /openapi.json": {
    answers: {
      200: DocumentAnswer;
      304: null;
      401: WrongKeyProblem;
      403: KeyEndedProblem;
      500: InternalProblem;
      503: NoAnswerProblem | NotKeptProblem | StreamRefusedProblem | UntrustedProblem;
    };
  };
}
