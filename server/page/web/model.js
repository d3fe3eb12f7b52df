// A model's page. The first response has the whole learning curve, later ones the new points.

import {ApiError, NoAnswer, ask, bytes, count, figure, idOf, keepLooking, make, moment, percent, setText, shortCount, showBadges,
        showServer} from './page.js';
import {X_AXES, curve, redraw} from './curves.js';
import {MAX_FEATURES, showFeatures} from './features.js';
import {beginning, exactly, printable} from './names.js';
import {withStreaks} from './streak.js';

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
function takePoints(history, now) {
  if (history.length === 0) return;
  const news = history.map(pointOf);
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

function forgetPoints() {
  points = [];
  knownRevision = 0;
  rate = null;
  featuresAt = 0;
}

// ---- Curves ----

// With few examples the error is noise, and would squeeze the rest of the curve.
const isEarly = (point) => point.examples < Math.min(100, points.at(-1).examples / 10);

const PICTURES = [
  {
    title: 'Mistakes and updates',
    y: {title: 'count, since the beginning', tick: shortCount, value: count},
    lines: [
      {name: 'updates', colour: 'first', of: (p) => p.revision},
      {name: 'mistakes', colour: 'second', dash: [7, 3], of: (p) => p.mistakes},
      {name: 'certified bound', colour: 'third', dash: [2, 3], of: () => undefined},
    ],
    says: (p) => `now ${count(p.revision)} updates, ${count(p.mistakes)} mistakes`,
  },
  {
    title: 'Error over the latest 1000 examples',
    y: {title: 'mistakes, % of examples', tick: (v) => `${Number(v.toPrecision(3))} %`, value: (v) => `${v.toFixed(2)} %`},
    lines: [{name: 'error', colour: 'first', of: (p) => (p.error === undefined || isEarly(p) ? undefined : 100 * p.error)}],
    says: (p) => (p.error === undefined ? 'unknown: the window restarts when the model is loaded' : `now ${percent(p.error)}`),
  },
  {
    title: 'Margin: ceiling and floor',
    y: {title: 'margin, features’ unit', tick: figure, value: figure},
    lines: [
      {name: 'ceiling', colour: 'first', of: (p) => p.ceiling},
      {name: 'floor', colour: 'second', dash: [7, 3], of: (p) => p.floor},
    ],
    // Ceilings fall by orders of magnitude.
    logarithmicWhenWide: true,
    says: (p) => (p.ceiling === undefined && p.floor === undefined ? 'not known, or the theorem does not apply'
      : [p.ceiling === undefined ? '' : `no separator has more than ${figure(p.ceiling)}`, p.floor === undefined ? '' : `some weights have ${figure(p.floor)}`]
            .filter(Boolean).join(', ')),
  },
  {
    title: 'Norm of the weights, including the bias',
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
  // On the axis of updates a streak has no width, and its beginning is unknown.
  const all = kind === 'examples' ? withStreaks(points, report) : points;
  for (const picture of PICTURES) {
    picture.chart ??= curve(picture.canvas, picture);
    const series = picture.lines.map((line) => {
      const values = line.name === 'certified bound' ? boundSeries(report.updateBound) : pointsOf(line, all);
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
  const head = ['Updates', 'Examples', 'Mistakes', 'Error, latest 1000', 'Norm', 'Ceiling', 'Floor', 'Time'];
  const row = (p) => make('tr', {}, ...[count(p.revision), count(p.examples), count(p.mistakes), percent(p.error), figure(p.norm),
                                        figure(p.ceiling), figure(p.floor), moment(new Date(p.time))]
                                        .map((text) => make('td', {className: 'number'}, text)));
  const place = part('numbers').querySelector('.scroll');
  const at = place.scrollTop;
  place.replaceChildren(make('table', {}, make('thead', {}, make('tr', {}, ...head.map((text) => make('th', {scope: 'col', className: 'number'}, text)))),
                             make('tbody', {}, ...[...points].reverse().map(row))));
  place.scrollTop = at;
}

part('axis').addEventListener('change', drawCurves);
part('axis').addEventListener('submit', (event) => event.preventDefault());
part('numbers').addEventListener('toggle', drawCurves);

// ---- Figures, report and settings ----

function showPairs(list, pairs) {
  const key = pairs.map(([name]) => name).join('\n');
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...pairs.map(([name, , title]) => make('div', {title: title ?? ''}, make('dt', {}, name), make('dd'))));
  }
  pairs.forEach(([, value], i) => setText(list.children[i].lastChild, value));
}

// Examples per second, between two responses some seconds apart.
function showRate(answer) {
  const now = {time: Date.parse(answer.server.time), examples: Number(answer.model.report.examples)};
  if (rate === null || now.examples < rate.examples) rate = {...now, text: '–'};
  if (now.time - rate.time >= 2000)
    rate = {...now, text: shortCount(Math.round(1000 * (now.examples - rate.examples) / (now.time - rate.time)))};
  return rate.text;
}

function showTiles(answer) {
  const {report} = answer.model;
  showPairs(part('tiles'), [
    ['Examples', count(report.examples), 'Learned examples'],
    ['Examples / s', showRate(answer), 'Over the latest seconds'],
    ['Mistakes', count(report.mistakes), 'Examples that the model predicted wrong before it learned them'],
    ['Updates', count(report.updates), 'Changes to the weights'],
    ['Right in a row', count(report.streak), 'Since the latest update'],
    ['Error so far', percent(report.progressiveError), 'Mistakes per example, since the model was created'],
    [`Error, latest ${report.windowExamples === '0' ? '1,000' : count(report.windowExamples)}`, percent(report.windowError),
     'Mistakes per example, over the latest 1000 at most; the window restarts when the model is loaded'],
  ]);
}

function showWords(lines) {
  const list = part('words');
  const key = lines.join('\n');
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...lines.map((line) => make('li', {}, printable(line))));
}

function showBound(report) {
  const meter = part('bound-meter');
  const {updateBound: bound, boundInUse} = report;
  const updates = Number(report.updates);
  meter.hidden = bound === undefined;
  let text = 'No bound is certified. A bound needs a pass without an update or an analysis (perceptronctl analyze), and a learner to ' +
             'which the convergence theorem applies.';
  if (bound !== undefined) {
    meter.value = Math.min(1, updates / bound);
    text = `${count(updates)} of at most ${count(Math.round(bound))} (${percent(updates / bound)})` +
           (updates > bound ? ': more, so the data has changed since the bound was certified.' : '.');
  }
  if (boundInUse !== undefined) text += ` At the current norm of the weights, ${percent(boundInUse)} of the theorem’s bound is used.`;
  setText(part('bound'), text);
}

function spaceInWords(space) {
  const map = space.map === undefined ? '' : `, through a feature map (${Object.keys(space.map)[0] ?? ''})`;
  if (space.dense) return `vectors of ${count(space.dense.dimension)} dimensions${map}`;
  if (space.hashed) return `names hashed into ${count(2 ** space.hashed.bits)} slots${map}`;
  if (space.named) return `named, at most ${count(space.named.maxFeatures)}${map}`;
  if (space.composition) return `the answers of ${space.composition.inputs.map((input) => input.model.replace(/^models\//, '')).join(', ')}${map}`;
  return '–';
}

function labelsInWords(model) {
  const names = model.labelNames.map(beginning);
  const classes = model.learner.classes;
  if (classes === undefined) return names.length === 2 ? `−1 ${names[0]}, +1 ${names[1]}` : '−1 and +1';
  const shown = names.slice(0, 12).join(', ') + (names.length > 12 ? `, and ${names.length - 12} more` : '');
  return `${names.length === 0 ? 'numbers' : shown}; at most ${count(classes.maxClasses)} classes`;
}

function retainedInWords(model) {
  const kept = model.retention;
  if (kept === undefined) return 'nothing';
  return `${count(kept.keptUpdates)} examples of updates, ${count(kept.keptSample)} sampled` +
         (kept.complete ? ': complete' : '') + `; ${bytes(kept.memoryBytes)}`;
}

function showSettings(model) {
  const kind = model.learner.kind.replace(/^LEARNER_KIND_/, '').toLowerCase().replaceAll('_', ' ');
  const pairs = [
    ['Learner', kind + (model.learner.stepSize === undefined ? '' : `, step size ${figure(model.learner.stepSize)}`)],
    ['Features', spaceInWords(model.featureSpace)],
    ['Labels', labelsInWords(model)],
    ['Retained', retainedInWords(model)],
    ['Revision', count(model.revision)],
    ['Created', moment(new Date(model.createTime))],
    ['Changed', moment(new Date(model.updateTime))],
  ];
  if (model.marginOfInterest > 0) pairs.push(['Margin of interest', figure(model.marginOfInterest)]);
  const list = part('settings');
  const flat = pairs.flat();
  if (list.children.length !== flat.length)
    list.replaceChildren(...pairs.flatMap(([name]) => [make('dt', {}, name), make('dd')]));
  flat.forEach((text, i) => setText(list.children[i], text));
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
  showTrouble(answer.inMemory ? '' : 'The model was evicted from memory. This page shows what is stored, and ' +
                                     'what was last seen; open the page again to load it.');
  showTiles(answer);
  showWords(answer.report);
  showBound(model.report);
  showSettings(model);
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
    forgetPoints();
    return look();
  }
  if (answer.inMemory) takePoints(model.history, Date.parse(answer.server.time));
  if (wantsFeatures) featuresAt = performance.now();
  lastAnswer = answer;
  show(answer);
}

keepLooking(look, INTERVAL);
