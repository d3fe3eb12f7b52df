// One page of the list of models, kept up to date. The first response has the curves; later ones have the current state alone.

import {ask, count, idOf, keepLooking, make, percent, printable, rateText, setText, showBadges, showServer} from './page.js';
import {choose, isChosen, isFull, showPages} from './controls.js';
import {changeQuery, currentQuery, isFiltered, onQuery, parametersOf} from './query.js';
import {drop, windowClearSince, sparkline} from './curves.js';

const PAGE_SIZE = 25;
const FIRST_POINTS = 48;
const MOST_POINTS = 160;
const INTERVAL = 1000;

const table = document.getElementById('models');
const body = table.tBodies[0];
const rows = new Map();
// The query whose rows are shown, as text; null before the first.
let shown = null;

function makeRow(id) {
  const cell = (className, label) => {
    const td = make('td', {className, role: 'cell'});
    td.dataset.label = label;
    return td;
  };
  const canvas = make('canvas', {role: 'img'});
  const row = {
    box: make('input', {type: 'checkbox', ariaLabel: `Compare ${id}`}),
    link: make('a', {className: 'name', href: `models/${encodeURIComponent(id)}`}, id),
    description: make('div', {className: 'description', dir: 'auto'}),
    state: cell('state', 'State'),
    examples: cell('number', 'Examples'),
    rate: cell('number', 'Examples / s'),
    updates: cell('number', 'Updates'),
    lifetime: cell('number', 'Error'),
    latest: cell('number', 'Error, last 1,000'),
    canvas,
    points: [],
    // The curve is received once, and continued with the current state of each response.
    whole: false,
  };
  row.box.addEventListener('change', () => choose(id, row.box.checked));
  const compared = make('td', {className: 'choice', role: 'cell'}, make('label', {}, row.box));
  const name = make('td', {className: 'model', role: 'cell'}, row.link, row.description);
  const curve = make('td', {className: 'curve', role: 'cell'}, make('div', {className: 'spark'}, canvas));
  row.element = make('tr', {role: 'row'}, compared, name, row.state, row.examples, row.rate, row.updates, row.lifetime, row.latest, curve);
  return row;
}

// Drops every second point if there are too many; keeps the first and the last.
function thin(points) {
  return points.length <= MOST_POINTS ? points : points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
}

// The points of the curve, including the one after which there was no mistake.
function pointsOf({learningCurve, report}) {
  const points = learningCurve.filter((point) => point.windowError !== undefined).map((point) => ({x: Number(point.examples), y: point.windowError}));
  const since = windowClearSince(report);
  if (since !== undefined && points.length > 0) points.push({x: since, y: 0});
  return points.sort((a, b) => a.x - b.x);
}

function drawCurve(row) {
  row.chart ??= sparkline(row.canvas);
  row.canvas.parentElement.classList.add('drawn');
  // With few examples the error is noise.
  const early = Math.min(100, row.points.at(-1).x / 10);
  const drawn = row.points.filter((point) => point.x >= early);
  row.chart.data.datasets[0].data = drawn;
  row.chart.data.datasets[0].pointRadius = drawn.length === 1 ? 3 : 0;
  row.chart.update();
}

// Rows whose curves are to be drawn: a few in each frame, so that the figures of a whole page need not wait for its curves.
const undrawn = new Set();
const CURVES_A_FRAME = 4;

function drawSomeCurves() {
  for (const row of [...undrawn].slice(0, CURVES_A_FRAME)) {
    undrawn.delete(row);
    drawCurve(row);
  }
  if (undrawn.size > 0) requestAnimationFrame(drawSomeCurves);
}

function addPoints(row, model) {
  const news = pointsOf(model).filter((point) => row.points.length === 0 || point.x > row.points.at(-1).x);
  if (news.length === 0) return;
  row.points = thin(row.points.concat(news));
  if (undrawn.size === 0) requestAnimationFrame(drawSomeCurves);
  undrawn.add(row);
}

function showChoice(row, id) {
  row.box.checked = isChosen(id);
  row.box.disabled = !row.box.checked && isFull();
}

function showRow(row, entry) {
  const {model} = entry;
  const {report} = model;
  setText(row.description, printable(model.description));
  row.description.hidden = model.description === '';
  showBadges(row.state, entry);
  setText(row.examples, count(report.examples));
  setText(row.rate, rateText(entry.examplesPerSecond));
  setText(row.updates, count(report.updates));
  setText(row.lifetime, percent(report.progressiveError));
  setText(row.latest, percent(report.windowError));
  showChoice(row, idOf(model));
  addPoints(row, model);
  row.whole = entry.inMemory;
  row.canvas.setAttribute('aria-label', row.points.length === 0 ? 'no learning curve: the model is not in memory, or has evaluated no example'
    : `error over the last 1,000 examples: from ${percent(row.points[0].y)} to ${percent(row.points.at(-1).y)}`);
}

function removeRow(uid) {
  const row = rows.get(uid);
  undrawn.delete(row);
  if (row.chart) drop(row.chart);
  row.element.remove();
  rows.delete(uid);
}

// Rows do not move under the pointer or the focus: those that are shown keep their order.
const isInUse = () => body.contains(document.activeElement) || (matchMedia('(hover: hover)').matches && body.matches(':hover'));
function inPlace(entries) {
  const positions = new Map([...body.rows].map((element, i) => [element, i]));
  const positionOf = ({model}) => positions.get(rows.get(model.uid)?.element) ?? Infinity;
  return entries.slice().sort((a, b) => positionOf(a) - positionOf(b) || 0);
}

function showModels(answered, isSameQuery) {
  const present = new Set(answered.map((entry) => entry.model.uid));
  for (const uid of [...rows.keys()].filter((uid) => !present.has(uid))) removeRow(uid);
  const entries = isSameQuery && isInUse() ? inPlace(answered) : answered;
  const focused = document.activeElement;
  entries.forEach((entry, i) => {
    const {uid} = entry.model;
    if (!rows.has(uid)) {
      const id = idOf(entry.model);
      rows.set(uid, {...makeRow(id), id});
    }
    const row = rows.get(uid);
    if (body.rows[i] !== row.element) body.insertBefore(row.element, body.rows[i] ?? null);
    showRow(row, entry);
  });
  // An element that was moved has lost the focus.
  if (focused !== document.activeElement && focused.isConnected) focused.focus({preventScroll: true});
  table.hidden = entries.length === 0;
}

function summary(matches, query) {
  if (isFiltered(query)) return matches === 0 ? 'No model matches.' : `${count(matches)} ${matches === 1 ? 'model matches' : 'models match'}.`;
  return matches === 0 ? 'There are no models yet. “perceptronctl create NAME --named” makes one.' : '';
}

// For models that are not in memory only what is stored is known.
function unloaded(entries) {
  const absent = entries.filter((entry) => !entry.inMemory).length;
  if (absent === 0) return '';
  const who = absent === entries.length ? 'None of these is' : `${absent} of these ${absent === 1 ? 'is' : 'are'} not`;
  return `${who} in memory: learning curves appear once a model is used or its page is opened.`;
}

// Models that have no figures, since they cannot be read.
function unread(names) {
  if (names.length === 0) return '';
  return `Cannot be read: ${names.map((name) => printable(name.slice('models/'.length))).join(', ')}. “perceptronctl get NAME” says why.`;
}

async function look() {
  const query = currentQuery();
  const parameters = parametersOf(query);
  const key = JSON.stringify(parameters);
  const isSameQuery = key === shown;
  const page = (points) => ask('api/models', {...parameters, page_size: PAGE_SIZE, points});
  let answer = await page(isSameQuery ? 1 : FIRST_POINTS);
  // The whole curve of a model that is new or was loaded is needed.
  if (isSameQuery && answer.models.some((entry) => entry.inMemory && !rows.get(entry.model.uid)?.whole)) answer = await page(FIRST_POINTS);
  // The reader has asked for something else meanwhile.
  if (JSON.stringify(parametersOf(currentQuery())) !== key) return look();
  const matches = Number(answer.matches);
  const pages = Math.ceil(matches / PAGE_SIZE);
  const number = Math.max(1, Math.trunc(Number(query.page)) || 1);
  if (number > pages && pages > 0) {
    changeQuery({page: pages === 1 ? '' : String(pages)}, {replace: true});
    return look();
  }
  shown = key;
  showServer(answer.server);
  showModels(answer.models, isSameQuery);
  setText(document.getElementById('summary'), summary(matches, query));
  setText(document.getElementById('unread'), unread(answer.unreachable));
  setText(document.getElementById('unloaded'), unloaded(answer.models));
  showPages(number, pages);
}

const lookNow = keepLooking(look, INTERVAL);
onQuery(() => {
  for (const row of rows.values()) showChoice(row, row.id);
  lookNow();
});
