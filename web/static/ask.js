// The ask box: an estimate while somebody types, the question, and the words of the answer as they come. It decides
// nothing: a refusal is shown in the server's own words, the draft stays, and the button says when it is back.

const TYPING_MS = 400; // a pause in typing after which an estimate is worth asking for
const AGAIN_MS = 5_000; // after which what did not fit is estimated again: others' holds come back

const box = document.getElementById("ask");
const words = JSON.parse(document.getElementById("page").dataset.words);
const [question, estimate, refusal, answer, tier] = ["question", "estimate", "refusal", "answer", "tier"].map((id) =>
  document.getElementById(id),
);
const form = box.querySelector("form");
const send = form.querySelector("button");

let asking = null; // what aborts the question under way
let closedUntil = 0; // before this moment, ms, the server would only say no again
let unaffordable = ""; // why the question as it stands would be refused
let typing = null;

const fill = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));

function show(element, text) {
  if (element.textContent !== text) element.textContent = text;
  element.hidden = text === "";
}

// --- the button and its reason ---------------------------------------------------------------------------------------------

function draw() {
  const waits_s = Math.ceil((closedUntil - Date.now()) / 1000);
  const closed = waits_s > 0;
  send.textContent = asking ? words.ask_stop : words.ask_send;
  send.disabled = !asking && (closed || unaffordable !== "" || question.value.trim() === "");
  if (closed && !asking) estimate.textContent = fill(words.ask_again, { left: lasting(waits_s) });
  else if (unaffordable) estimate.textContent = unaffordable;
}

function lasting(seconds) {
  const minutes = Math.ceil(seconds / 60);
  if (seconds < 90) return fill(words.seconds_left, { s: seconds });
  if (minutes < 60) return fill(words.minutes_left, { m: minutes });
  return fill(words.hours_left, { h: Math.floor(minutes / 60), m: minutes % 60 });
}

// --- while somebody types --------------------------------------------------------------------------------------------------

function typed() {
  clearTimeout(typing);
  typing = setTimeout(estimateNow, TYPING_MS);
  draw();
}

async function estimateNow() {
  const text = question.value.trim();
  if (text === "" || asking) return say("", "");
  const { model, provider, maxTokens } = box.dataset;
  const body = { model, provider, messages: [{ role: "user", content: text }], max_tokens: Number(maxTokens) };
  const heard = await post(box.dataset.estimate, body).catch(() => null);
  if (question.value.trim() !== text || asking) return; // somebody typed on
  if (!heard?.ok) return say("", ""); // the question itself will hear why
  const said = await heard.json();
  if (said.fits === false) {
    typing = setTimeout(estimateNow, AGAIN_MS);
    return say("", words.ask_does_not_fit);
  }
  say(costWords(said), "");
}

function say(cost, reason) {
  unaffordable = reason;
  estimate.textContent = reason || cost;
  draw();
}

function costWords(said) {
  const shares = Object.values(said.cost_pct ?? {});
  if (!shares.length) return "";
  const most = Math.max(...shares);
  return most < 0.1 ? words.ask_costs_little : fill(words.ask_costs, { share: most.toFixed(1) });
}

// --- asking ----------------------------------------------------------------------------------------------------------------

async function ask(event) {
  event.preventDefault();
  if (asking) return asking.abort();
  const text = question.value.trim();
  if (text === "" || send.disabled) return;
  asking = new AbortController();
  show(refusal, "");
  show(tier, "");
  show(answer, "");
  draw();
  try {
    const heard = await post(box.dataset.ask, { question: text }, asking.signal);
    if (heard.ok) await write(heard);
    else await refuse(heard);
  } catch (error) {
    show(refusal, error.name === "AbortError" ? words.ask_stopped : words.ask_broken);
  } finally {
    asking = null;
    answer.setAttribute("aria-busy", "false");
    draw();
    typed();
  }
}

function post(url, body, signal) {
  return fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
}

async function write(heard) {
  const grade = heard.headers.get("x-purse-tier");
  show(tier, (words.ask_tiers[grade] ?? "").trim());
  answer.setAttribute("aria-busy", "true");
  let finish = null;
  for await (const data of events(heard.body)) {
    if (data === "[DONE]") break;
    const said = JSON.parse(data);
    if (said.error) throw new Error(said.error.message);
    const choice = said.choices?.[0];
    if (choice?.delta?.content) show(answer, answer.textContent + choice.delta.content);
    finish = choice?.finish_reason ?? finish;
  }
  if (finish === "length") show(tier, [tier.textContent, words.ask_cut].join(" ").trim());
}

async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data:")) yield line.slice(5).trim();
  }
}

async function refuse(heard) {
  const { error = {} } = await heard.json().catch(() => ({}));
  show(refusal, error.message ?? words.ask_broken);
  const seconds = Number(heard.headers.get("Retry-After") ?? error.metadata?.seconds ?? 0);
  const resets = Date.parse(error.metadata?.resets_at ?? "");
  closedUntil = seconds ? Date.now() + seconds * 1000 : error.metadata?.reason === "spent" && resets ? resets : 0;
}

form.addEventListener("submit", ask);
question.addEventListener("input", typed);
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
setInterval(draw, 1_000);
box.hidden = false;
draw();
