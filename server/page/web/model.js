// A model's page. The first response has the whole learning curve, later ones the new points.

import {ApiError, NoAnswer, ask, count, exactly, figure, idOf, keepLooking, make, moment, percent, percentTick, pointText, printable,
        rateText, setText, shortCount, showBadges, showServer} from './page.js';
import {X_AXES, curve, redraw} from './curves.js';
import {CurvePoints, lineOf} from './points.js';
import {MAX_FEATURES, showFeatures, showMembers, showSettings} from './details.js';

const INTERVAL = 1000;
const FEATURES_INTERVAL = 10000;
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
const points = new CurvePoints();
let featuresAt = 0;
let lastAnswer = null;
let rate = null;
// The first request loads the model if needed, and so does the first one after the server was unreachable. Later requests do not keep
// the model in memory.
let wantsLoading = true;

document.title = `${id} · perceptrond`;
setText(part('name'), exactly(id));
part('json').href = path;
part('compare').href = `../?${new URLSearchParams({compare: id})}`;

// ---- Learning curve ----

const PICTURES = [
  {
    title: 'Mistakes and updates',
    y: {title: 'count over the model’s life', tick: shortCount, value: count},
    lines: [
      {name: 'updates', colour: 'first', of: (p) => p.revision},
      {name: 'mistakes', colour: 'second', dash: [7, 3], of: (p) => p.mistakes},
      {name: 'bound', colour: 'third', dash: [2, 3], of: () => undefined},
    ],
  },
  {
    title: 'Error over the last 1,000 examples',
    y: {title: 'mistakes, % of examples', tick: percentTick, value: (v) => `${v.toFixed(2)} %`},
    lines: [{name: 'error', colour: 'first', of: (p) => points.errorOf(p)}],
    note: (p) => (p.error === undefined ? 'unknown: the window restarts when the model is loaded' : ''),
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
    note: (p) => (p.ceiling === undefined && p.floor === undefined ? 'not known, or not applicable' : ''),
  },
  {
    title: 'Weight norm',
    y: {title: '‖θ‖, features’ unit', tick: figure, value: figure},
    lines: [{name: 'norm', colour: 'first', of: (p) => p.norm}],
    note: (p) => (p.norm === undefined ? 'not known' : ''),
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

function isWide(series) {
  const values = series.flat().map((point) => point.y).filter((y) => Number.isFinite(y));
  return values.length > 1 && Math.min(...values) > 0 && Math.max(...values) > 30 * Math.min(...values);
}

// The bound is drawn only where it does not squeeze the curve.
function boundSeries(bound) {
  const present = points.all.at(-1);
  if (bound === undefined || bound > 4 * Math.max(1, present.revision)) return [];
  return [points.all[0], present].map((p) => ({p, y: bound}));
}

function drawCurves() {
  if (points.all.length === 0 || lastAnswer === null) return;
  const {kind, logarithmic} = axis();
  const {report} = lastAnswer.model;
  const all = points.over(kind, report);
  for (const picture of PICTURES) {
    picture.chart ??= curve(picture.canvas, picture);
    const series = picture.lines.map((line) => {
      const values = line.name === 'bound' ? boundSeries(report.updateBound) : lineOf(all, line.of);
      return values.map(({p, y}) => ({x: p[kind], y: y ?? NaN, words: pointText(p)}));
    });
    const note = picture.note?.(points.all.at(-1)) ?? '';
    setText(picture.caption, note);
    picture.caption.hidden = note === '';
    picture.canvas.parentElement.hidden = !series.flat().some((point) => Number.isFinite(point.y));
    if (picture.canvas.parentElement.hidden) continue;
    redraw(picture.chart, series, {
      kind, logarithmic, logarithmicY: picture.logarithmicWhenWide === true && isWide(series),
      label: `${picture.title} over ${X_AXES[kind]}, ${points.all.length} points`,
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
                             make('tbody', {}, ...[...points.all].reverse().map(row))));
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
function examplesPerSecond(answer) {
  const now = {time: Date.parse(answer.server.time), examples: Number(answer.model.report.examples)};
  if (rate === null || now.examples < rate.examples) rate = now;
  if (now.time - rate.time >= 2000) rate = {...now, value: 1000 * (now.examples - rate.examples) / (now.time - rate.time)};
  return rate.value;
}

// Figures that another part of the page shows.
const SHOWN_ELSEWHERE = new Set(['state', 'update_bound']);

// The figures come with title, value and explanation from the server, which has them from their definitions. Each is shown once: those
// that come first as tiles, the others in a list.
function showFigures(answer) {
  const headlines = answer.figures.filter((figure) => figure.headline).map(({title, value, help}) => [title, value, help]);
  showPairs(part('tiles'), [...headlines, ['Examples / s', rateText(examplesPerSecond(answer)), 'Examples evaluated per second, over the last seconds.']]);
  const others = answer.figures.filter((figure) => !figure.headline && !SHOWN_ELSEWHERE.has(figure.name));
  const list = part('figures');
  const key = others.map(({name}) => name).join();
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...others.map(({title, help}) => make('div', {}, make('dt', {}, title), make('dd'), make('dd', {className: 'soft'}, help))));
  }
  others.forEach(({value}, i) => setText(list.children[i].children[1], value));
}

// What the state means: the badge has its name.
function showState(figures) {
  const text = figures.find(({name}) => name === 'state')?.value ?? '';
  const meaning = /\((.*)\)$/.exec(text)?.[1] ?? '';
  setText(part('meaning'), meaning === '' ? '' : `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`);
}

// The convergence theorem's bound on updates.
function showBound(report) {
  const meter = part('bound-meter');
  const bound = report.updateBound;
  meter.hidden = bound === undefined;
  if (bound === undefined) {
    setText(part('bound'), report.notSeparable ? 'There is no bound: nothing separates the data.' :
                           'No bound is known. A bound needs a learner with the convergence theorem, and a whole pass without an update ' +
                           'or an analysis (perceptronctl analyze).');
    return;
  }
  const made = Number(report.updates) / bound;
  meter.value = Math.min(1, made);
  setText(part('bound'), `At most ${count(Math.floor(bound))} updates on the data of the margin floor, by the convergence theorem; ` +
                         `${percent(made)} of them were made.` +
                         (made > 1 ? ' The data has changed since the bound was computed.' : ''));
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
  showState(answer.figures);
  showBound(model.report);
  showSettings(part('settings'), model, answer.learner);
  showMembers(part('members'), model);
  showFeatures(answer);
  part('content').hidden = false;
  // A model without examples has no curves.
  part('curves-title').parentElement.hidden = points.all.every((point) => point.examples === 0);
  drawCurves();
}

async function look() {
  const wantsFeatures = performance.now() - featuresAt >= FEATURES_INTERVAL || featuresAt === 0;
  let answer;
  try {
    answer = await ask(path, {load: wantsLoading, after_revision: points.knownRevision, features: wantsFeatures ? MAX_FEATURES : 0});
  } catch (error) {
    if (error instanceof NoAnswer) wantsLoading = true;
    if (error instanceof ApiError && error.status === 404) {
      showTrouble(uid === '' ? `There is no model named “${exactly(id)}”.` : 'The model was deleted. This page shows its last known state.');
    }
    throw error;
  }
  wantsLoading = false;
  const {model} = answer;
  const anew = uid !== '' && (uid !== model.uid || Number(model.revision) < points.knownRevision);
  uid = model.uid;
  if (anew) {
    // The name has another model now, or the server restarted with an older state.
    points.clear();
    rate = null;
    featuresAt = 0;
    return look();
  }
  if (answer.inMemory) points.add(model.learningCurve, Date.parse(answer.server.time));
  if (wantsFeatures) featuresAt = performance.now();
  lastAnswer = answer;
  show(answer);
}

keepLooking(look, INTERVAL);
