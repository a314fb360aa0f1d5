// Draws the charts again with uPlot, to be read closely: a line under the pointer, and the figures at it. The drawing that
// the server made stays where there is no uPlot. Colours come from the stylesheet, so that light and dark are one place.

const HEIGHT = 250;
const DAY_S = 86_400;

const drawn = new Map(); // figure -> its uPlot
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const STYLES = {
  area: () => ({ stroke: colour("spent"), width: 2, fill: colour("under") }),
  line: () => ({ stroke: colour("others"), width: 2, paths: uPlot.paths.stepped({ align: 1 }) }),
  even: () => ({ stroke: colour("ink-soft"), width: 1.5, dash: [6, 5] }),
  ahead: () => ({ stroke: colour("spent"), width: 1.5, dash: [2, 4] }),
  bars: () => ({
    stroke: colour("spent"),
    fill: colour("spent"),
    width: 0,
    paths: uPlot.paths.bars({ align: 1, size: [0.82, Infinity] }),
  }),
};

const two = (number) => String(number).padStart(2, "0");

function moment(at_s, short) {
  const at = new Date(at_s * 1000);
  const clock = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
  return short ? clock : `${at.getUTCDate()} ${at.toLocaleString("en", { month: "short", timeZone: "UTC" })}`;
}

const written = (value) => (value == null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 6 }));

function axis(more) {
  const line = { stroke: colour("rule"), width: 1 };
  return { stroke: colour("ink-soft"), grid: line, ticks: { ...line, size: 4 }, font: "12px sans-serif", ...more };
}

function options(values, width) {
  const [start, end] = values.range;
  const short = end - start <= 2 * DAY_S;
  return {
    width,
    height: HEIGHT,
    tzDate: (at_s) => uPlot.tzDate(new Date(at_s * 1000), "Etc/UTC"),
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    legend: { live: true, markers: { show: false } },
    scales: {
      x: { time: true, range: [start, end] },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.06 : 1] },
    },
    axes: [
      axis({ space: 70, size: 30, values: (_, at) => at.map((one) => moment(one, short)) }),
      axis({ size: 46, values: (_, all) => all.map(written) }),
    ],
    series: [
      { label: "UTC", value: (_, at) => (at == null ? "–" : moment(at, short)) },
      ...values.kinds.map((kind, n) => ({
        label: values.names[n],
        spanGaps: kind !== "bars",
        points: { show: false },
        value: (_, value) => (value == null ? "–" : `${written(value)} ${values.unit}`),
        ...STYLES[kind](),
      })),
    ],
  };
}

// Between two corners a line has values too: so that the pointer reads one everywhere.
function filled(values) {
  return values.y.map((row, n) => (values.kinds[n] === "bars" ? row : between(values.x, row)));
}

function between(x, row) {
  const known = row.flatMap((value, n) => (value === null ? [] : [n]));
  return row.map((value, n) => {
    if (value !== null) return value;
    const before = known.findLast((one) => one < n);
    const after = known.find((one) => one > n);
    if (before === undefined || after === undefined) return null;
    return row[before] + ((row[after] - row[before]) * (x[n] - x[before])) / (x[after] - x[before]);
  });
}

function draw(figure) {
  const values = JSON.parse(figure.dataset.values);
  if (values.x.length < 2) return;
  figure.classList.add("drawn");
  drawn.get(figure)?.destroy();
  const chart = new uPlot(options(values, figure.clientWidth), [values.x, ...filled(values)], figure);
  chart.root.setAttribute("aria-hidden", "true"); // the drawing beside it has the words, and the table the figures
  drawn.set(figure, chart);
}

function update(figure) {
  const chart = drawn.get(figure);
  const values = JSON.parse(figure.dataset.values);
  if (chart === undefined || chart.series.length !== values.names.length + 1) return draw(figure);
  chart.setData([values.x, ...filled(values)], false);
  chart.setScale("x", { min: values.range[0], max: values.range[1] });
}

const all = () => document.querySelectorAll("[data-chart]");

function drawNew() {
  for (const figure of drawn.keys()) if (!figure.isConnected) drawn.delete(figure);
  for (const figure of all()) if (!drawn.has(figure)) draw(figure);
}

function redraw() {
  for (const figure of all()) draw(figure);
}

if (window.uPlot) {
  drawNew();
  document.addEventListener("values", (event) => update(event.target));
  document.addEventListener("parts", drawNew);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const [figure, chart] of drawn) chart.setSize({ width: figure.clientWidth, height: HEIGHT });
  });
}
