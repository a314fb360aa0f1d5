// Keeps an operators' page current: the server sends each part of it that has changed, as HTML, and this puts it in place.
// It never says "live" by itself: the part that says so comes from the server, and goes when the server falls silent.

const SILENCE_MS = 20_000; // the wallet speaks every second, a server that hears nothing every fifteen
const RETRY_MS = [1_000, 2_000, 5_000, 10_000, 30_000]; // for what EventSource itself gives up on

const page = document.getElementById("live");
let source = null;
let retry = null;
let failures = 0;
let lastHeard = performance.now();

function put(name, html) {
  const part = page.querySelector(`[data-part="${name}"]`);
  if (part === null) return;
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  if (!keepCharts(part, fresh.content)) part.replaceChildren(fresh.content);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// A chart that somebody is reading takes new values and stays; what stands around it is put in place.
function keepCharts(part, fresh) {
  const here = [...part.querySelectorAll("[data-chart]")];
  const there = [...fresh.querySelectorAll("[data-chart]")];
  const names = (charts) => charts.map((chart) => chart.dataset.chart).join(" ");
  if (!here.length || names(here) !== names(there)) return false;
  for (const [n, chart] of here.entries()) {
    chart.dataset.values = there[n].dataset.values;
    if (!chart.classList.contains("drawn")) chart.replaceChildren(...there[n].childNodes);
    there[n].replaceWith(chart);
    chart.dispatchEvent(new CustomEvent("values", { bubbles: true }));
  }
  part.replaceChildren(fresh);
  return true;
}

function receive(event) {
  lastHeard = performance.now();
  failures = 0;
  for (const [name, html] of Object.entries(JSON.parse(event.data))) put(name, html);
  document.dispatchEvent(new Event("parts"));
}

function stale() {
  const badge = page.querySelector(".fresh .badge");
  if (badge === null) return;
  badge.dataset.state = "stale";
  badge.textContent = page.dataset.reconnecting;
}

function connect() {
  disconnect();
  lastHeard = performance.now();
  source = new EventSource(page.dataset.stream);
  source.addEventListener("parts", receive);
  source.addEventListener("error", () => {
    stale();
    if (source?.readyState === EventSource.CLOSED) connectLater();
  });
}

function connectLater() {
  disconnect();
  stale();
  retry = setTimeout(connect, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] * (0.75 + Math.random() / 2));
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

// A hidden page needs no stream: nobody looks.
function attend() {
  if (document.visibilityState === "visible") return connect();
  disconnect();
  stale();
}

if (page !== null) {
  document.addEventListener("visibilitychange", attend);
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && attend());
  addEventListener("offline", () => source !== null && connectLater());
  addEventListener("online", connect);
  setInterval(() => source !== null && performance.now() - lastHeard > SILENCE_MS && connectLater(), 1_000);
  if (document.visibilityState === "visible") connect();
  // Choosing is enough; the button is for those without a script.
  for (const form of page.querySelectorAll("form.filters")) {
    form.addEventListener("change", () => form.requestSubmit());
  }
}
