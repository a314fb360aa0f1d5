// Keeps the figures of the page current. The server has drawn them already: this reads the same words and moves the same
// elements. It never says "live" unless a document came in lately, and shows no figure of a period that is over.

const SILENCE_MS = 10_000; // the stream speaks every second, even when nothing happens: past this it is broken
const SILENCE_STALE_MS = 60_000; // but a server that has said it knows nothing newer may be quiet for longer
const RETRY_MS = [1_000, 2_000, 5_000, 10_000, 30_000]; // for what EventSource itself gives up on
const BEHIND_MS = 30_000; // a server that catches up may be behind for a while; a restored stream stays behind
const REDRAW_MS = 5_000;
const INTERVALS_MAX = 3; // a figure of the provider that is older counts as none
const DAY_MS = 24 * 3600 * 1000;
const THRESHOLDS = [50, 75, 90, 100];
const NO_FIGURE = "–";

const page = document.getElementById("page");
const words = JSON.parse(page.dataset.words);
const skew_ms = Number(page.dataset.now) - Date.now(); // countdowns go by the server's clock, not by the visitor's
const now = () => Date.now() + skew_ms;

let drawn = document.getElementById("window");
let shown = JSON.parse(drawn.dataset.status);

// --- words ---------------------------------------------------------------------------------------------------------------

const fill = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
const two = (number) => String(number).padStart(2, "0");
const grouped = (written) => written.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));

function when(at, seconds = false) {
  const moment = new Date(at);
  const clock = moment.toISOString().slice(11, seconds ? 19 : 16);
  return dated(at, clock, moment.getUTCDate(), moment.getUTCMonth(), moment.getUTCFullYear());
}

function yours(at) {
  const moment = new Date(at);
  if (moment.getTimezoneOffset() === 0) return "";
  const clock = `${two(moment.getHours())}:${two(moment.getMinutes())}`;
  return fill(words.yours, { at: dated(at, clock, moment.getDate(), moment.getMonth(), moment.getFullYear()) });
}

function dated(at, clock, day, month, year) {
  const near = Math.abs(Math.floor(at / 1000) - Math.floor(now() / 1000)) <= DAY_MS / 1000;
  return near ? clock : fill(words.dated, { day, month: words.months[month], year, clock });
}

function countdown(at) {
  const minutes = Math.floor((at - now()) / 60_000);
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return fill(words.days_left, { d: Math.floor(hours / 24), h: hours % 24 });
  if (hours >= 1) return fill(words.hours_left, { h: hours, m: minutes % 60 });
  return minutes > 0 ? fill(words.minutes_left, { m: minutes }) : words.moment_left;
}

function usedWords(share) {
  return share.used > 0 && share.used < 10 ? words.used_a_little : fill(words.used, { used: Math.floor(share.used / 10) });
}

function resetsWords(resetsAt) {
  if (resetsAt === null) return words.never;
  return fill(words.resets, { at: when(resetsAt), yours: yours(resetsAt) });
}

function fullWords(budget, share) {
  if (share.used < 1000) return "";
  const free = share.spent + share.others < 1000 && share.held > 0;
  const said = [free ? words.all_held : budget.resets_at === null ? words.used_up_for_good : words.used_up];
  if (budget.first_exhausted_at) said.push(fill(words.first_exhausted, { at: when(Date.parse(budget.first_exhausted_at)) }));
  if (share.used > 1000) said.push(fill(words.over, { over: tenths(share.used - 1000) }));
  return said.join(" ");
}

function refusedWords(budget, share) {
  if (!budget.first_exhausted_at || share.used >= 1000) return "";
  return fill(words.refused, { at: when(Date.parse(budget.first_exhausted_at)) });
}

function ownCallsWords(reading) {
  if (!reading) return "";
  const { source, unreadable } = reading;
  if (!reading.read_at) return fill(unreadable ? words.own_calls_only_unreadable : words.own_calls_only, { source });
  const at = Date.parse(reading.read_at);
  if (now() - at <= INTERVALS_MAX * reading.every_s * 1000) return "";
  return fill(unreadable ? words.own_calls_unreadable : words.own_calls, { source, at: when(at) });
}

function frozenWords(frozen) {
  if (!frozen || (frozen.scope !== "all" && !articleOf(frozen.scope))) return ""; // one user's freeze is that user's affair
  const until = frozen.until && Date.parse(frozen.until);
  if (until && until <= now()) return "";
  return fill(frozen.scope === "all" ? words.frozen_all : words.frozen_budget, {
    scope: frozen.scope,
    until: until ? fill(words.until, { at: when(until) }) : words.until_lifted,
    reason: frozen.reason.replace(/[ .]+$/, "") || words.no_reason,
  });
}

function earlierWords(count) {
  if (!count) return "";
  const daily = [...drawn.querySelectorAll("[data-budget]")].every((article) => article.dataset.per === "day");
  if (count === 1) return daily ? words.earlier_day_one : words.earlier_one;
  return fill(daily ? words.earlier_day : words.earlier, { n: grouped(String(count)) });
}

// --- figures -------------------------------------------------------------------------------------------------------------

const tenths = (share) => `${Math.floor(share / 10)}.${share % 10}`;

function sharesOf(budget) {
  const percents = [budget.settled_pct, budget.extra_pct, budget.held_pct, budget.used_pct];
  const [spent, others, held, used] = percents.map((share) => Math.round(share * 10));
  return { spent, others, held, used, left: Math.max(0, 1000 - used) };
}

function amountsOf(budget) {
  const { settled: spent, extra: others, held, remaining } = budget;
  const lines = { spent, others, held, left: remaining.startsWith("-") ? "0" : remaining };
  const digits = Math.max(...[budget.limit, ...Object.values(lines)].map((line) => (line.split(".")[1] ?? "").length));
  return Object.fromEntries(Object.entries(lines).map(([line, written]) => [line, grouped(aligned(written, digits))]));
}

function aligned(written, digits) {
  const [whole, part = ""] = written.split(".");
  return digits ? `${whole}.${part.padEnd(digits, "0")}` : whole;
}

// --- drawing -------------------------------------------------------------------------------------------------------------

const at = (root, name) => root.querySelector(`[data-at="${name}"]`);

function say(root, name, text) {
  const element = at(root, name);
  if (element.textContent !== text) element.textContent = text;
  return element;
}

function note(root, name, text, part = name) {
  say(root, part, text);
  at(root, name).hidden = text === "";
}

function draw() {
  if (shown === null) return;
  say(drawn, "as-of", fill(words.as_of, { at: when(Date.parse(shown.as_of), true), seq: grouped(String(shown.seq)) }));
  note(drawn, "frozen", frozenWords(shown.frozen));
  note(drawn, "earlier", earlierWords(shown.open_earlier));
  for (const budget of shown.budgets) drawBudget(articleOf(budget.name), budget);
}

function drawBudget(article, budget) {
  const resetsAt = budget.resets_at === null ? null : Date.parse(budget.resets_at);
  const ended = resetsAt !== null && now() >= resetsAt;
  const share = ended ? { spent: 0, others: 0, held: 0, used: 0, left: 0 } : sharesOf(budget);
  const source = budget.observed?.source ?? article.dataset.source;
  article.dataset.ended = ended ? "yes" : "no";
  if (article.dataset.per !== "total") say(article, "period", budget.period);
  say(article, "used", ended ? words.unknown : usedWords(share));
  say(article, "resets", ended ? fill(words.ended, { at: when(resetsAt) }) : resetsWords(resetsAt));
  say(article, "resets-in", ended || resetsAt === null ? "" : fill(words.resets_in, { left: countdown(resetsAt) }));
  note(article, "full", ended ? "" : fullWords(budget, share), "full-words");
  note(article, "refused", ended ? "" : refusedWords(budget, share));
  note(article, "own-calls", ended ? "" : ownCallsWords(budget.reading));
  at(article, "others-row").hidden = !share.others && !source;
  drawMeter(article, share, ended);
  drawLines(article, budget, share, ended);
}

function drawMeter(article, share, ended) {
  const meter = article.querySelector('[role="meter"]');
  meter.setAttribute("aria-valuenow", tenths(Math.min(1000, share.used)));
  const spoken = Object.fromEntries(Object.entries(share).map(([line, value]) => [line, tenths(value)]));
  meter.setAttribute("aria-valuetext", ended ? words.unknown : fill(words.meter, spoken));
  const whole = Math.max(1000, share.used);
  let edge = 0;
  for (const line of ["spent", "others", "held"]) {
    place(at(meter, `bar-${line}`), percent(edge, whole), percent(share[line], whole));
    edge += share[line];
  }
  place(at(meter, "bar-limit"), percent(1000, whole), whole > 1000 ? "3" : "0");
}

const percent = (part, whole) => `${((100 * part) / whole).toFixed(2)}%`;

function place(rect, x, width) {
  rect.setAttribute("x", x);
  rect.setAttribute("width", width);
}

function drawLines(article, budget, share, ended) {
  const amounts = "limit" in budget ? amountsOf(budget) : null;
  if (amounts) say(article, "limit", fill(words.limit, { limit: grouped(budget.limit), unit: budget.unit }));
  for (const line of ["spent", "others", "held", "left"]) {
    say(article, line, ended ? NO_FIGURE : fill(words.percent, { share: tenths(share[line]) }));
    if (amounts) say(article, `${line}-amount`, ended ? NO_FIGURE : amounts[line]);
  }
}

const articleOf = (name) => drawn.querySelector(`[data-budget="${CSS.escape(name)}"]`);

// Whether the budgets are those that the server drew. When the plan changed they are not: it draws them anew.
function matches(status) {
  const here = [...drawn.querySelectorAll("[data-budget]")].map((article) => {
    const { budget, unit } = article.dataset;
    return `${budget} ${unit} ${!at(article, "spent-amount").hidden}`;
  });
  const there = status.budgets.map((budget) => `${budget.name} ${budget.unit} ${"limit" in budget}`);
  return shown !== null && here.join("\n") === there.join("\n");
}

let redrawnAt = -Infinity;

async function redraw() {
  if (performance.now() - redrawnAt < REDRAW_MS) return;
  redrawnAt = performance.now();
  const answer = await fetch(location.pathname, { cache: "no-store" }).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("window");
  if (fresh === null) return;
  drawn.replaceWith(fresh);
  drawn = fresh;
  shown = JSON.parse(drawn.dataset.status);
  drawBadge();
  draw();
}

// --- one polite line, at thresholds only -----------------------------------------------------------------------------------

const passed = new Map(); // "budget period" -> the highest threshold that was passed: holds come and go, it is said once

function listen(status, aloud) {
  for (const budget of status.budgets) {
    const key = `${budget.name} ${budget.period}`;
    const reached = THRESHOLDS.findLast((threshold) => budget.used_pct >= threshold) ?? 0;
    if (reached <= (passed.get(key) ?? 0)) continue;
    passed.set(key, reached);
    if (aloud) document.getElementById("heard").textContent = fill(words.heard, { name: budget.name, used: reached });
  }
}

// --- live or not ---------------------------------------------------------------------------------------------------------

let source = null;
let retry = null;
let failures = 0;
let freshness = "connecting";
let lastHeard = performance.now();
let patience_ms = SILENCE_MS;
let lastLive = now();
let behindSince = null;

function drawBadge() {
  const text = freshness === "stale" ? fill(words.not_live, { at: when(lastLive, true) }) : words[freshness];
  const badge = say(drawn, "badge", text);
  badge.dataset.state = drawn.dataset.state = freshness;
  badge.hidden = false;
}

function become(next) {
  freshness = next;
  drawBadge();
}

function receive(event) {
  const status = JSON.parse(event.data);
  lastHeard = performance.now();
  patience_ms = status.live === false ? SILENCE_STALE_MS : SILENCE_MS;
  failures = 0;
  if (isBehind(status)) return become("stale");
  if (!matches(status)) {
    become("stale");
    return void redraw();
  }
  shown = status;
  draw();
  listen(status, true);
  if (status.live === false) return become("stale");
  lastLive = now();
  become("live");
}

// A server that is itself catching up would turn the figures back: they stay until it is as far as the page.
function isBehind(status) {
  if (shown === null || status.wallet !== shown.wallet || status.seq >= shown.seq) {
    behindSince = null;
    return false;
  }
  behindSince ??= performance.now();
  return performance.now() - behindSince < BEHIND_MS;
}

function connect() {
  disconnect();
  lastHeard = performance.now();
  patience_ms = SILENCE_MS;
  source = new EventSource(page.dataset.stream);
  source.addEventListener("status", receive);
  source.addEventListener("error", () => {
    become("stale");
    if (source?.readyState === EventSource.CLOSED) connectLater();
  });
}

function connectLater() {
  disconnect();
  become("stale");
  retry = setTimeout(connect, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] * (0.75 + Math.random() / 2));
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function tick() {
  if (source !== null && performance.now() - lastHeard > patience_ms) connectLater();
  draw();
}

// A hidden page needs no stream: browsers allow six of them, and nobody looks.
function attend() {
  if (document.visibilityState === "visible") return connect();
  disconnect();
  become("stale");
}

if (shown !== null) listen(shown, false);
document.addEventListener("visibilitychange", attend);
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => event.persisted && attend());
addEventListener("offline", () => source !== null && connectLater());
addEventListener("online", connect);
setInterval(tick, 1_000);
drawBadge();
draw();
if (document.visibilityState === "visible") connect();
