// A model's page. The first response has the whole learning curve, later ones the new points.

import {ApiError, NoAnswer, ask, count, exactly, figure, idOf, keepLooking, make, moment, percent, printable, setText, shortCount,
        showBadges, showServer} from './page.js';
import {X_AXES, curve, redraw, withStreaks} from './curves.js';
import {MAX_FEATURES, showFeatures, showSettings} from './details.js';

const INTERVAL = 1000;
const FEATURES_INTERVAL = 10000;
// More than the server keeps, so that points received live stay until they are thinned.
const MAX_POINTS = 1500;

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const id = decoded(location.pathname.split('/').pop());
const path = `../api/models/${encodeURIComponent(id)}`;
const part = (name) => document.getElementById(name);

let uid = '';
// In ascending order of examples: {revision, examples, mistakes, norm, ceiling, floor, error, time}; absent figures are undefined.
let points = [];
// The revision up to which the points stored by the server are known.
let knownRevision = 0;
let featuresAt = 0;
let lastAnswer = null;
let rate = null;
// The first request loads the model if needed, and so does the first one after the server was unreachable. Later requests do not keep
// the model in memory.
let wantsLoading = true;

document.title = `${id} · perceptrond`;
setText(part('name'), exactly(id));
part('json').href = path;

// ---- Points ----

const pointOf = (point) => ({
  revision: Number(point.revision), examples: Number(point.examples), mistakes: Number(point.mistakes), norm: point.weightNorm,
  ceiling: point.marginCeiling, floor: point.marginFloor, error: point.windowError, time: Date.parse(point.time),
});

// The last point is the current state; the server stores those before it.
function takePoints(curve, now) {
  if (curve.length === 0) return;
  const news = curve.map(pointOf);
  const present = news.at(-1);
  present.time = now;
  if (news.length > 1) knownRevision = news.at(-2).revision;
  const last = points.at(-1);
  // No example was learned since the last point: only its time changes.
  if (last !== undefined && last.examples === present.examples && last.revision === present.revision) points.pop();
  points = points.concat(news);
  points.sort((a, b) => a.examples - b.examples || a.revision - b.revision || a.time - b.time);
  // A point received live may now be stored by the server, too.
  points = points.filter(
      (p, i) => i === points.length - 1 || p.examples !== points[i + 1].examples || p.revision !== points[i + 1].revision);
  if (points.length > MAX_POINTS) points = points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
}

function clearPoints() {
  points = [];
  knownRevision = 0;
  rate = null;
  featuresAt = 0;
}

// ---- Learning curve ----

// With few examples the error is noise, and would squeeze the rest of the curve.
const isEarly = (point) => point.examples < Math.min(100, points.at(-1).examples / 10);

const PICTURES = [
  {
    title: 'Mistakes and updates',
    y: {title: 'count over the model’s life', tick: shortCount, value: count},
    lines: [
      {name: 'updates', colour: 'first', of: (p) => p.revision},
      {name: 'mistakes', colour: 'second', dash: [7, 3], of: (p) => p.mistakes},
      {name: 'bound', colour: 'third', dash: [2, 3], of: () => undefined},
    ],
    says: (p) => `now ${count(p.revision)} updates, ${count(p.mistakes)} mistakes`,
  },
  {
    title: 'Error over the last 1,000 examples',
    y: {title: 'mistakes, % of examples', tick: (v) => `${Number(v.toPrecision(3))} %`, value: (v) => `${v.toFixed(2)} %`},
    lines: [{name: 'error', colour: 'first', of: (p) => (p.error === undefined || isEarly(p) ? undefined : 100 * p.error)}],
    says: (p) => (p.error === undefined ? 'unknown: the window restarts when the model is loaded' : `now ${percent(p.error)}`),
  },
  {
    title: 'Bounds on the margin',
    y: {title: 'margin, features’ unit', tick: figure, value: figure},
    lines: [
      {name: 'ceiling', colour: 'first', of: (p) => p.ceiling},
      {name: 'floor', colour: 'second', dash: [7, 3], of: (p) => p.floor},
    ],
    // Ceilings fall by orders of magnitude.
    logarithmicWhenWide: true,
    says: (p) => (p.ceiling === undefined && p.floor === undefined ? 'not known, or not applicable'
      : [p.ceiling === undefined ? '' : `at most ${figure(p.ceiling)}`, p.floor === undefined ? '' : `at least ${figure(p.floor)}`]
            .filter(Boolean).join(', ')),
  },
  {
    title: 'Weight norm',
    y: {title: '‖θ‖, features’ unit', tick: figure, value: figure},
    lines: [{name: 'norm', colour: 'first', of: (p) => p.norm}],
    says: (p) => (p.norm === undefined ? 'not known' : `now ${figure(p.norm)}`),
  },
];

for (const picture of PICTURES) {
  const canvas = make('canvas', {role: 'img'});
  picture.caption = make('figcaption');
  part('curves').append(make('figure', {}, make('h3', {}, picture.title), picture.caption, make('div', {className: 'plot'}, canvas)));
  picture.canvas = canvas;
}

function axis() {
  const form = new FormData(part('axis'));
  return {kind: form.get('x'), logarithmic: form.get('log') === 'on'};
}

const words = (p) => `example ${count(p.examples)}, update ${count(p.revision)}` +
  (Number.isFinite(p.time) ? `, ${moment(new Date(p.time))}` : '');

function isWide(series) {
  const values = series.flat().map((point) => point.y).filter((y) => Number.isFinite(y));
  return values.length > 1 && Math.min(...values) > 0 && Math.max(...values) > 30 * Math.min(...values);
}

// The bound is drawn only where it does not squeeze the curve.
function boundSeries(bound) {
  const present = points.at(-1);
  if (bound === undefined || bound > 4 * Math.max(1, present.revision)) return [];
  return [points[0], present].map((p) => ({p, y: bound}));
}

// The points of a line; a point of the model without the figure makes a gap.
function pointsOf(line, all) {
  return all.filter((p) => Number.isFinite(p.time) || line.of(p) !== undefined).map((p) => ({p, y: line.of(p)}));
}

function drawCurves() {
  if (points.length === 0 || lastAnswer === null) return;
  const {kind, logarithmic} = axis();
  const {report} = lastAnswer.model;
  // Over updates a streak has no width, and over time its beginning is not known.
  const all = kind === 'examples' ? withStreaks(points, report) : points;
  for (const picture of PICTURES) {
    picture.chart ??= curve(picture.canvas, picture);
    const series = picture.lines.map((line) => {
      const values = line.name === 'bound' ? boundSeries(report.updateBound) : pointsOf(line, all);
      return values.map(({p, y}) => ({x: p[kind], y: y ?? NaN, words: words(p)}));
    });
    const said = picture.says(points.at(-1));
    setText(picture.caption, said);
    picture.canvas.parentElement.hidden = !series.flat().some((point) => Number.isFinite(point.y));
    if (picture.canvas.parentElement.hidden) continue;
    redraw(picture.chart, series, {
      kind, logarithmic, logarithmicY: picture.logarithmicWhenWide === true && isWide(series),
      label: `${picture.title} over ${X_AXES[kind]}, ${points.length} points: ${said}`,
    });
  }
  if (part('numbers').open) showNumbers();
}

function showNumbers() {
  const head = ['Updates', 'Examples', 'Mistakes', 'Error, last 1,000', 'Norm', 'Ceiling', 'Floor', 'Time'];
  const row = (p) => make('tr', {}, ...[count(p.revision), count(p.examples), count(p.mistakes), percent(p.error), figure(p.norm),
                                        figure(p.ceiling), figure(p.floor), moment(new Date(p.time))]
                                        .map((text) => make('td', {className: 'number'}, text)));
  const box = part('numbers').querySelector('.scroll');
  const at = box.scrollTop;
  box.replaceChildren(make('table', {}, make('thead', {}, make('tr', {}, ...head.map((text) => make('th', {scope: 'col', className: 'number'}, text)))),
                             make('tbody', {}, ...[...points].reverse().map(row))));
  box.scrollTop = at;
}

part('axis').addEventListener('change', drawCurves);
part('axis').addEventListener('submit', (event) => event.preventDefault());
part('numbers').addEventListener('toggle', drawCurves);

// ---- Figures and the report's text ----

// A list of [heading, value, explanation].
function showPairs(list, pairs) {
  const key = pairs.map(([name]) => name).join('\n');
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...pairs.map(([name, , title]) => make('div', {title}, make('dt', {}, name), make('dd'))));
  }
  pairs.forEach(([, value], i) => setText(list.children[i].lastChild, value));
}

// Examples per second, between two answers some seconds apart.
function rateText(answer) {
  const now = {time: Date.parse(answer.server.time), examples: Number(answer.model.report.examples)};
  if (rate === null || now.examples < rate.examples) rate = {...now, text: '–'};
  if (now.time - rate.time >= 2000)
    rate = {...now, text: shortCount(Math.round(1000 * (now.examples - rate.examples) / (now.time - rate.time)))};
  return rate.text;
}

// The figures come with title, value and explanation from the server, which has them from their definitions.
function showFigures(answer) {
  const headlines = answer.figures.filter((figure) => figure.headline).map(({title, value, help}) => [title, value, help]);
  showPairs(part('tiles'), [...headlines, ['Examples / s', rateText(answer), 'Examples evaluated per second, over the last seconds.']]);
  const list = part('figures');
  const key = answer.figures.map(({name}) => name).join();
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...answer.figures.map(({title, help}) =>
      make('tr', {}, make('th', {scope: 'row'}, title), make('td', {className: 'number'}), make('td', {className: 'soft'}, help))));
  }
  answer.figures.forEach(({value}, i) => setText(list.rows[i].cells[1], value));
}

function showReport(lines) {
  const list = part('status');
  const key = lines.join('\n');
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...lines.map((line) => make('li', {}, printable(line))));
}

function showBound(report) {
  const meter = part('bound-meter');
  const bound = report.updateBound;
  const updates = Number(report.updates);
  meter.hidden = bound === undefined;
  if (bound === undefined) {
    setText(part('bound'), 'No bound is known. A bound needs a learner with the convergence theorem, and a whole pass without an update ' +
                           'or an analysis (perceptronctl analyze).');
    return;
  }
  meter.value = Math.min(1, updates / bound);
  setText(part('bound'), `${count(updates)} updates of at most ${count(Math.floor(bound))} (${percent(updates / bound)}).` +
                         (updates > bound ? ' The data has changed since the bound was computed.' : ''));
}

// ---- Updating the page ----

function showTrouble(text) {
  setText(part('trouble'), text);
  part('trouble').hidden = text === '';
}

function show(answer) {
  const {model} = answer;
  showServer(answer.server);
  showBadges(part('badges'), answer);
  const word = answer.convergence === '' ? '' : ` · ${answer.convergence}`;
  document.title = `${idOf(model)}${word} · perceptrond`;
  setText(part('description'), printable(model.description));
  part('description').hidden = model.description === '';
  showTrouble(answer.inMemory ? '' : 'The model was evicted from memory because it was unused for longest. This page shows what is stored ' +
                                     'and what was last seen; reload it to load the model.');
  showFigures(answer);
  showReport(answer.report);
  showBound(model.report);
  showSettings(part('settings'), model, answer.learner);
  showFeatures(answer);
  part('content').hidden = false;
  // A model without examples has no curves.
  part('curves-title').parentElement.hidden = points.every((point) => point.examples === 0);
  drawCurves();
}

async function look() {
  const wantsFeatures = performance.now() - featuresAt >= FEATURES_INTERVAL || featuresAt === 0;
  let answer;
  try {
    answer = await ask(path, {load: wantsLoading, after_revision: knownRevision, features: wantsFeatures ? MAX_FEATURES : 0});
  } catch (error) {
    if (error instanceof NoAnswer) wantsLoading = true;
    if (error instanceof ApiError && error.status === 404) {
      showTrouble(uid === '' ? `There is no model named “${exactly(id)}”.` : 'The model was deleted. This page shows its last known state.');
    }
    throw error;
  }
  wantsLoading = false;
  const {model} = answer;
  const anew = uid !== '' && (uid !== model.uid || Number(model.revision) < knownRevision);
  uid = model.uid;
  if (anew) {
    // The name has another model now, or the server restarted with an older state.
    clearPoints();
    return look();
  }
  if (answer.inMemory) takePoints(model.learningCurve, Date.parse(answer.server.time));
  if (wantsFeatures) featuresAt = performance.now();
  lastAnswer = answer;
  show(answer);
}

keepLooking(look, INTERVAL);
