// A day's slider: moves the mark in the charts at once, and asks for the wallet of that moment once the hand rests.

const RESTS_MS = 180;

const slider = document.querySelector("#slider");
const part = document.querySelector("#moment");
const heard = document.querySelector("#heard");
const field = document.querySelector("#at");
const start = Number(slider.dataset.start);
const length = Number(slider.dataset.length);
const clock = new Intl.DateTimeFormat("en-GB", {
  timeZone: slider.dataset.zone, hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});

let resting;
let asking = new AbortController();

slider.closest(".slider").hidden = false;
slider.addEventListener("input", () => {
  point(Number(slider.value));
  clearTimeout(resting);
  resting = setTimeout(() => show(Number(slider.value), { remember: true }), RESTS_MS);
});
point(Number(slider.value));
if (!part.firstElementChild) show(Number(slider.value), { remember: false });

/** The mark in every chart, and the field, at this second of the day. */
function point(second) {
  const written = clock.format(start + 1000 * second);
  field.value = written;
  slider.setAttribute("aria-valuetext", written);
  for (const now of document.querySelectorAll(".course .now")) {
    const wide = now.ownerSVGElement.viewBox.baseVal;
    const x = (wide.width * second / length).toFixed(1);
    now.setAttribute("d", `M${x} 0V${wide.height}`);
  }
}

/** The wallet of this second, as the server draws it. Whatever is still on its way is of no more interest. */
async function show(second, { remember }) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  part.setAttribute("aria-busy", "true");
  if (!part.firstElementChild) say(part.dataset.looking, "quiet");
  const at = new Date(start + 1000 * second).toISOString();
  try {
    const answer = await fetch(`${part.dataset.address}?at=${encodeURIComponent(at)}`, { signal });
    const html = await answer.text();
    if (signal.aborted) return;
    const found = new DOMParser().parseFromString(html, "text/html").querySelector(".moment, main .note");
    if (found) part.replaceChildren(found);
    else say(part.dataset.failed, "note");
    if (remember) heard.textContent = summary();
    if (remember && answer.ok) history.replaceState(null, "", `?at=${clock.format(start + 1000 * second)}`);
  } catch (error) {
    if (signal.aborted) return;
    say(part.dataset.failed, "note");
  }
  part.removeAttribute("aria-busy");
}

/** What whoever does not see the part hears of it: when, and how much of each budget was used. */
function summary() {
  const lines = part.querySelectorAll(".as-of, .note, [data-budget] h3, .figure");
  return Array.from(lines, (line) => line.textContent).join(" ");
}

function say(words, kind) {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = words;
  part.replaceChildren(line);
}
