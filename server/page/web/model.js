// A model's page. The first answer brings its whole curve, later ones what came since.

import {ApiError, NoAnswer, ask, bytes, count, figure, idOf, keepLooking, make, moment, percent, setText, shortCount, showBadges,
        showServer} from './page.js';
import {X_AXES, curve, redraw} from './curves.js';
import {beginning, exactly, nameElement, printable} from './names.js';
import {withStreaks} from './streak.js';

const INTERVAL = 1000;
const FEATURES_INTERVAL = 10000;
const FEATURES = 20;
const FEATURES_A_CLASS = 6;
// Of more classes those that the reader asks for are shown.
const CLASSES = 12;
// More than the server holds, so that what was seen live stays until it is thinned.
const MOST_POINTS = 1500;

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
// By ascending examples: {revision, examples, mistakes, norm, ceiling, floor, error, time}; absent figures are undefined.
let points = [];
// The revision up to which the server's own points are known.
let knownRevision = 0;
let featuresAt = 0;
let lastAnswer = null;
// The latest answer that has features.
let lastFeatures = null;
let rate = null;
// Whoever opens the page wants its curves: the model is loaded, if it has to be; and again when the server was away. After that looking
// on does not keep it in memory.
let wantsLoading = true;

document.title = `${id} · perceptrond`;
setText(part('name'), exactly(id));
part('json').href = path;

// ---- Points ----

const pointOf = (point) => ({
  revision: Number(point.revision), examples: Number(point.examples), mistakes: Number(point.mistakes), norm: point.weightNorm,
  ceiling: point.marginCeiling, floor: point.marginFloor, error: point.windowError, time: Date.parse(point.time),
});

// The last of the server's points is the present; those before it are kept by the server.
function takePoints(history, now) {
  if (history.length === 0) return;
  const news = history.map(pointOf);
  const present = news.at(-1);
  present.time = now;
  if (news.length > 1) knownRevision = news.at(-2).revision;
  const last = points.at(-1);
  // Nothing was judged: only the time goes on.
  if (last !== undefined && last.examples === present.examples && last.revision === present.revision) points.pop();
  points = points.concat(news);
  points.sort((a, b) => a.examples - b.examples || a.revision - b.revision || a.time - b.time);
  // What was seen live may be one of the server's by now.
  points = points.filter(
      (p, i) => i === points.length - 1 || p.examples !== points[i + 1].examples || p.revision !== points[i + 1].revision);
  if (points.length > MOST_POINTS) points = points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
}

function forgetPoints() {
  points = [];
  knownRevision = 0;
  rate = null;
  featuresAt = 0;
}

// ---- Curves ----

// Of a handful of examples a share says little and would press everything else into the ground.
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
    says: (p) => (p.error === undefined ? 'not known now: the window begins anew when the model is loaded' : `now ${percent(p.error)}`),
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
    title: 'Norm of the weights, the offset’s included',
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

// The bound is drawn where there is room for it: not where it would press the curve into the ground.
function boundSeries(bound) {
  const present = points.at(-1);
  if (bound === undefined || bound > 4 * Math.max(1, present.revision)) return [];
  return [points[0], present].map((p) => ({p, y: bound}));
}

// Of a line the points that it goes through; where a point of the model's own has no such figure there is a gap.
function pointsOf(line, all) {
  return all.filter((p) => Number.isFinite(p.time) || line.of(p) !== undefined).map((p) => ({p, y: line.of(p)}));
}

function drawCurves() {
  if (points.length === 0 || lastAnswer === null) return;
  const {kind, logarithmic} = axis();
  const {report} = lastAnswer.model;
  // Over updates a streak takes no room, and when it began is not known.
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

// ---- Figures and words ----

function showPairs(list, pairs) {
  const key = pairs.map(([name]) => name).join('\n');
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...pairs.map(([name, , title]) => make('div', {title: title ?? ''}, make('dt', {}, name), make('dd'))));
  }
  pairs.forEach(([, value], i) => setText(list.children[i].lastChild, value));
}

// Examples a second, between two answers some seconds apart.
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
    ['Examples', count(report.examples), 'Judged for learning'],
    ['Examples / s', showRate(answer), 'Over the latest seconds'],
    ['Mistakes', count(report.mistakes), 'Of these, on the wrong side when they came'],
    ['Updates', count(report.updates), 'Changes to the weights'],
    ['Right in a row', count(report.streak), 'Since the latest update'],
    ['Error so far', percent(report.progressiveError), 'Mistakes an example, since the beginning'],
    [`Error, latest ${report.windowExamples === '0' ? '1,000' : count(report.windowExamples)}`, percent(report.windowError),
     'Mistakes an example, over the latest 1000 at the most; the window begins anew when the model is loaded'],
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
  let text = 'No bound is certified. It takes a whole pass without an update, or an analysis (perceptronctl analyze), and a rule ' +
             'that the convergence theorem speaks of.';
  if (bound !== undefined) {
    meter.value = Math.min(1, updates / bound);
    text = `${count(updates)} of at most ${count(Math.round(bound))} (${percent(updates / bound)})` +
           (updates > bound ? ': more, so the data has changed since it was certified.' : '.');
  }
  if (boundInUse !== undefined) text += ` Of the room that the theorem leaves at the present norm, ${percent(boundInUse)} is in use.`;
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
         (kept.complete ? ': all there ever were' : '') + `; ${bytes(kept.memoryBytes)}`;
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

// ---- Features ----

function featureName(model, weights, i) {
  if (weights.names.length > 0) return weights.names[i];
  const index = weights.indices[i];
  const input = model.featureSpace.composition?.inputs[index];
  if (input !== undefined) return input.model.replace(/^models\//, '');
  return `${model.featureSpace.hashed ? 'slot' : 'feature'} ${index}`;
}

function pushes(model, several, value) {
  if (several) return value > 0 ? 'for' : 'against';
  return value > 0 ? model.labelNames[1] ?? '+1' : model.labelNames[0] ?? '−1';
}

const nameOf = (list) => (list.className === '' ? `class ${list.classNumber}` : list.className);

// All if they are few; else as many of those with what is sought in their names.
function chosenClasses(lists) {
  part('classes').hidden = lists.length <= CLASSES;
  if (lists.length <= CLASSES) return lists;
  const sought = part('class-search').value.trim().toLowerCase();
  const found = lists.filter((list) => nameOf(list).toLowerCase().includes(sought));
  const shown = found.length > CLASSES ? `The first ${CLASSES} of ${count(found.length)}` : count(found.length);
  setText(part('classes-note'), `${shown} ${found.length === 1 ? 'class' : 'classes'}${sought === '' ? '' : ` with “${sought}”`}`);
  return found.slice(0, CLASSES);
}

function featureTable(model, list, several) {
  const {weights} = list;
  const heaviest = Math.max(...weights.values.map(Math.abs));
  const className = nameOf(list);
  const limit = several ? FEATURES_A_CLASS : FEATURES;
  const rows = weights.values.slice(0, limit).map((value, i) => {
    const bar = make('span');
    bar.style.width = `${(100 * Math.abs(value) / heaviest).toFixed(1)}%`;
    return make('tr', {}, make('td', {}, nameElement(featureName(model, weights, i))),
                make('td', {className: 'number'}, figure(value)), make('td', {}, nameElement(pushes(model, several, value))),
                make('td', {'aria-hidden': 'true'}, make('div', {className: value > 0 ? 'bar' : 'bar minus'}, bar)));
  });
  const caption = make('caption', {}, ...(several ? [nameElement(className), ': '] : []), `offset ${figure(weights.offset)}`);
  const head = make('tr', {}, ...['Feature', 'Weight', several ? 'Speaks' : 'Speaks for', ''].map(
                                  (text, i) => make(text === '' ? 'td' : 'th', text === '' ? {} : {scope: 'col', className: i === 1 ? 'number' : ''}, text)));
  return make('table', {}, caption, make('thead', {}, head), make('tbody', {}, ...rows));
}

function showFeatures(answer) {
  const {heaviestFeatures: features, model} = answer;
  if (features === undefined) return;
  lastFeatures = answer;
  const lists = features.lists.filter((list) => list.weights.values.length > 0);
  let note = features.absent;
  if (note === '' && lists.length === 0) note = 'All weights are zero.';
  if (note === '') {
    note = features.firstRevision === features.lastRevision ? `Of revision ${count(features.firstRevision)}.`
      : `Looked through while it learned, from revision ${count(features.firstRevision)} to ${count(features.lastRevision)}.`;
  }
  setText(part('features-note'), note.charAt(0).toUpperCase() + note.slice(1));
  part('features').replaceChildren(...chosenClasses(lists).map((list) => featureTable(model, list, model.learner.classes !== undefined)));
}

part('class-search').addEventListener('input', () => showFeatures(lastFeatures));

// ---- Looking ----

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
  showTrouble(answer.inMemory ? '' : 'The model has left memory, being unused for longest. What stands here is what is stored, and ' +
                                     'what was last seen; open the page again to load it.');
  showTiles(answer);
  showWords(answer.report);
  showBound(model.report);
  showSettings(model);
  showFeatures(answer);
  part('content').hidden = false;
  // Nothing to draw of a model that has judged nothing.
  part('curves-title').parentElement.hidden = points.every((point) => point.examples === 0);
  drawCurves();
}

async function look() {
  const wantsFeatures = performance.now() - featuresAt >= FEATURES_INTERVAL || featuresAt === 0;
  let answer;
  try {
    answer = await ask(path, {load: wantsLoading, after_revision: knownRevision, features: wantsFeatures ? FEATURES : 0});
  } catch (error) {
    if (error instanceof NoAnswer) wantsLoading = true;
    if (error instanceof ApiError && error.status === 404) {
      showTrouble(uid === '' ? `There is no model named “${exactly(id)}”.` : 'The model was deleted. What stands here is what was last seen.');
    }
    throw error;
  }
  wantsLoading = false;
  const {model} = answer;
  const anew = uid !== '' && (uid !== model.uid || Number(model.revision) < knownRevision);
  uid = model.uid;
  if (anew) {
    // Another of that name, or the server came back with less: from the beginning.
    forgetPoints();
    return look();
  }
  if (answer.inMemory) takePoints(model.history, Date.parse(answer.server.time));
  if (wantsFeatures) featuresAt = performance.now();
  lastAnswer = answer;
  show(answer);
}

keepLooking(look, INTERVAL);
