// Curves, drawn by Chart.js. Colours are those of the style sheet, also after a change of the colour scheme; lines differ in their dashes,
// too. Screen readers cannot read a canvas: each has a label that says what it shows, and its data is on the page as text.

import {shortCount} from './page.js';

const Chart = globalThis.Chart;
Chart.defaults.animation = false;
Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const drawn = new Set();

function paint(chart) {
  for (const line of chart.data.datasets) {
    line.borderColor = colour(line.colourName);
    line.pointBackgroundColor = line.borderColor;
    line.pointBorderColor = line.borderColor;
  }
  for (const scale of Object.values(chart.options.scales)) {
    if (scale.display === false) continue;
    scale.grid.color = colour('grid');
    scale.grid.borderColor = colour('soft');
    scale.ticks.color = colour('soft');
    scale.title.color = colour('soft');
  }
  chart.options.plugins.legend.labels.color = colour('text');
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const chart of drawn) {
    paint(chart);
    chart.update();
  }
});

function start(canvas, config) {
  const chart = new Chart(canvas, config);
  paint(chart);
  drawn.add(chart);
  return chart;
}

export function drop(chart) {
  drawn.delete(chart);
  chart.destroy();
}

// A line without axes; the bottom is 0.
export function sparkline(canvas) {
  const hidden = {display: false, type: 'linear', bounds: 'data'};
  return start(canvas, {
    type: 'line',
    data: {datasets: [{data: [], colourName: 'first', borderWidth: 1.6, borderJoinStyle: 'round', pointRadius: 0}]},
    options: {
      maintainAspectRatio: false,
      parsing: false,
      events: [],
      layout: {padding: 2},
      scales: {x: {...hidden}, y: {...hidden, min: 0}},
      plugins: {legend: {display: false}, tooltip: {enabled: false}},
    },
  });
}

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [1, 2, 5, 10, 30].map((n) => n * SECOND).concat([1, 2, 5, 10, 30].map((n) => n * MINUTE),
                                                            [1, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14, 30, 90, 365].map((n) => n * DAY));

// Ticks at round times of the reader's time zone.
function timeTicks(scale) {
  const room = Math.max(2, Math.floor(scale.width / 90));
  const step = STEPS.find((s) => (scale.max - scale.min) / s <= room) ?? STEPS.at(-1);
  const zone = new Date(scale.min).getTimezoneOffset() * MINUTE;
  scale.ticks = [];
  for (let t = Math.ceil((scale.min - zone) / step) * step + zone; t <= scale.max; t += step) scale.ticks.push({value: t});
  scale.step = step;
}

function timeText(value, step) {
  const date = new Date(value);
  if (step >= DAY) return date.toLocaleDateString('en-GB', {day: 'numeric', month: 'short'});
  const time = {hour: '2-digit', minute: '2-digit'};
  if (step < MINUTE) time.second = '2-digit';
  return date.toLocaleTimeString('en-GB', time);
}

export const X_AXES = {
  examples: 'examples',
  revision: 'updates',
  time: 'time',
};

// The axis ends where the data ends; drops the last round tick if it is too close to that.
function roomyTicks(scale) {
  const at = scale.ticks.map((tick) => tick.value);
  if (at.length > 2 && at[at.length - 1] - at[at.length - 2] < 0.75 * (at[1] - at[0])) scale.ticks.pop();
}

function xAxis(kind, logarithmic) {
  const ticks = {maxRotation: 0, autoSkipPadding: 16, includeBounds: false};
  const axis = {
    type: logarithmic && kind !== 'time' ? 'logarithmic' : 'linear',
    title: {display: true, text: X_AXES[kind]},
    grid: {},
    ticks,
    bounds: 'data',
  };
  if (kind === 'time') {
    axis.afterBuildTicks = timeTicks;
    ticks.callback = function(value) { return timeText(value, this.step); };
  } else {
    if (axis.type === 'linear') {
      axis.min = 0;
      axis.afterBuildTicks = roomyTicks;
    }
    ticks.callback = (value) => (axis.type === 'linear' || Number.isInteger(Math.log10(value)) ? shortCount(value) : '');
  }
  return axis;
}

// The legend: visible lines in their order, with their dashes.
function dashedLabels(chart) {
  const labels = Chart.defaults.plugins.legend.labels.generateLabels(chart);
  const lines = chart.data.datasets;
  return labels.filter((label) => lines[label.datasetIndex].data.some((point) => Number.isFinite(point.y)))
      .map((label) => ({...label, lineDash: lines[label.datasetIndex].borderDash, lineWidth: 2}))
      .sort((a, b) => a.datasetIndex - b.datasetIndex);
}

// The marks of a line with a marker: about this many, spread over the axis, so that lines of many points stay lines.
const MARKS = 9;

// The radius of each point: 0 but for those that are nearest to where marks are due. Lines have their marks at places of their own.
function markRadii(points, line, lines, logarithmic) {
  const at = (point) => (logarithmic ? Math.log(point.x) : point.x);
  const radii = points.map(() => 0);
  const known = points.flatMap((point, i) => (Number.isFinite(point.y) && Number.isFinite(at(point)) ? [i] : []));
  if (known.length === 0) return radii;
  const [first, last] = [at(points[known[0]]), at(points[known.at(-1)])];
  for (let mark = 0; mark < MARKS; ++mark) {
    const due = first + (last - first) * (mark + (line + 0.5) / lines) / MARKS;
    const near = known.reduce((best, i) => (Math.abs(at(points[i]) - due) < Math.abs(at(points[best]) - due) ? i : best), known[0]);
    radii[near] = 4;
  }
  radii[known.at(-1)] = 4;
  return radii;
}

// A chart of several lines with axes. `lines` has name, colour and dash of each, and its marker if it has one; `y` has title, number
// format, and whether it is logarithmic. Without `legend` the page has its own.
export function curve(canvas, {lines, y, legend = lines.length > 1}) {
  return start(canvas, {
    type: 'line',
    data: {
      // Later lines are drawn on top: where lines coincide the dashes of one show on the other.
      datasets: lines.map((line, i) => ({
        label: line.name, colourName: line.colour, borderDash: line.dash ?? [], data: [], borderWidth: 2, borderJoinStyle: 'round',
        pointRadius: 0, pointHitRadius: 8, order: -i, pointStyle: line.marker ?? 'circle', pointBorderWidth: 1.5, isMarked: line.marker !== undefined,
      })),
    },
    options: {
      maintainAspectRatio: false,
      parsing: false,
      // Each line has its own points.
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {
        x: xAxis('examples', false),
        y: {type: 'linear', beginAtZero: true, title: {display: true, text: y.title}, grid: {},
            ticks: {callback: (value) => y.tick(value), maxTicksLimit: 6}},
      },
      plugins: {
        legend: {display: legend, align: 'start', labels: {
          usePointStyle: true, pointStyle: 'line', pointStyleWidth: 32,
          generateLabels: dashedLabels,
        }},
        tooltip: {
          // The latest of several points at one position.
          filter: (item, i, items) => !items.slice(i + 1).some((later) => later.datasetIndex === item.datasetIndex),
          callbacks: {
            title: (items) => (items.length === 0 ? '' : items[0].raw.words),
            label: (item) => `${item.dataset.label}: ${y.value(item.raw.y)}`,
          },
        },
      },
    },
  });
}

// Replaces the points of a chart, a list of {x, y, words} for each line, and its label for screen readers.
export function redraw(chart, series, {kind, logarithmic, logarithmicY = false, label}) {
  const scales = chart.options.scales;
  if (chart.axisKey !== `${kind} ${logarithmic} ${logarithmicY}`) {
    chart.axisKey = `${kind} ${logarithmic} ${logarithmicY}`;
    scales.x = xAxis(kind, logarithmic);
    scales.y.type = logarithmicY ? 'logarithmic' : 'linear';
    scales.y.beginAtZero = !logarithmicY;
    paint(chart);
  }
  const positive = (point) => !logarithmic || kind === 'time' || point.x > 0;
  series.forEach((points, i) => {
    // A single point, or several at one position, make no line: they are drawn as a dot.
    const known = points.filter((point) => Number.isFinite(point.y) && positive(point));
    const line = chart.data.datasets[i];
    line.data = points.filter(positive);
    if (line.isMarked) line.pointRadius = markRadii(line.data, i, series.length, logarithmic && kind !== 'time');
    else line.pointRadius = known.length > 0 && known.every((point) => point.x === known[0].x && point.y === known[0].y) ? 4 : 0;
  });
  chart.update();
  chart.canvas.setAttribute('aria-label', label);
}

// Streaks: the state of a model between two points of its curves, while it makes no mistake. Weights and counts do not change; a straight
// line between the points would be wrong.

// The window of the latest error, in examples.
const WINDOW = 1000;

// The example after which the window has no mistake; undefined if it may have one, or the streak is shorter.
export function windowClearSince(report) {
  const streak = Number(report.streak);
  return streak < WINDOW ? undefined : Number(report.examples) - streak + WINDOW;
}

// The point of a model that saw more examples without a mistake: what would have to be measured is not known.
const unchanged = (point, examples, error) => ({...point, examples, error, ceiling: undefined, floor: undefined, time: NaN});

// The points between two points, if the second one's is the only update and mistake between them.
function between(point, next) {
  const updates = next.revision - point.revision;
  if (updates > 1 || next.mistakes - point.mistakes > updates) return [];
  const end = next.examples - updates;
  const fill = [];
  if (point.examples + WINDOW < end) fill.push(unchanged(point, point.examples + WINDOW, 0));
  if (point.examples < end && end < next.examples) fill.push(unchanged(point, end, fill.length > 0 ? 0 : undefined));
  return fill;
}

// All points, with those in between. The last one is the current state, which the report describes.
export function withStreaks(points, report) {
  const present = points.at(-1);
  const known = points.slice();
  // The last update, if its own point is not stored.
  const since = present.examples - Number(report.streak);
  const first = points.findIndex((point) => point.revision === present.revision);
  if (since < points[first].examples) known.splice(first, 0, unchanged(present, since, undefined));
  return known.flatMap((point, i) => (i + 1 < known.length ? [point, ...between(point, known[i + 1])] : [point]));
}
