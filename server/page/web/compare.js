// Learning curves of several models in one plot. Models, figure and axis are kept in the page's address. Lines differ in colour, dashes
// and markers; the table below is their legend.

import {ApiError, MOST_COMPARED, NoAnswer, ask, count, figure, keepLooking, make, percent, percentTick, pointText, setText, shortCount,
        showBadges, showServer} from './page.js';
import {X_AXES, curve, drop, redraw} from './curves.js';
import {CurvePoints, lineOf} from './points.js';

const INTERVAL = 2000;

const part = (id) => document.getElementById(id);
const form = part('axis');

const STYLES = [
  {colour: 'first', dash: [], marker: 'circle'},
  {colour: 'second', dash: [8, 3], marker: 'triangle'},
  {colour: 'third', dash: [2, 3], marker: 'rect'},
  {colour: 'fourth', dash: [10, 3, 2, 3], marker: 'rectRot'},
  {colour: 'fifth', dash: [4, 4], marker: 'crossRot'},
  {colour: 'sixth', dash: [14, 4], marker: 'star'},
  {colour: 'seventh', dash: [1, 4], marker: 'cross'},
  {colour: 'eighth', dash: [6, 2, 1, 2, 1, 2], marker: 'dash'},
];

const FIGURES = {
  window_error: {title: 'Error over the last 1,000 examples', unit: 'mistakes, % of examples', tick: percentTick, value: (v) => `${v.toFixed(2)} %`,
                 of: (p, points) => points.errorOf(p)},
  mistakes: {title: 'Mistakes', unit: 'count over the model’s life', tick: shortCount, value: count, of: (p) => p.mistakes},
  updates: {title: 'Updates', unit: 'count over the model’s life', tick: shortCount, value: count, of: (p) => p.revision},
  margin_ceiling: {title: 'Margin ceiling', unit: 'features’ unit', tick: figure, value: figure, of: (p) => p.ceiling},
  margin_floor: {title: 'Margin floor', unit: 'features’ unit', tick: figure, value: figure, of: (p) => p.floor},
  weight_norm: {title: 'Weight norm', unit: 'features’ unit', tick: figure, value: figure, of: (p) => p.norm},
};
part('figure').append(...Object.entries(FIGURES).map(([value, {title}]) => make('option', {value}, title)));

// ---- The address ----

const parameters = new URLSearchParams(location.search);
const ids = [...new Set(parameters.getAll('model'))];
if (parameters.get('figure') in FIGURES) part('figure').value = parameters.get('figure');
if (parameters.get('x') in X_AXES) form.elements.x.value = parameters.get('x');
form.elements.log.checked = parameters.get('log') === 'true';

const choice = () => {
  const data = new FormData(form);
  return {figure: data.get('figure'), kind: data.get('x'), logarithmic: data.get('log') === 'true'};
};

function keepAddress() {
  const {figure: name, kind, logarithmic} = choice();
  const kept = new URLSearchParams(models.map(({id}) => ['model', id]));
  if (name !== 'window_error') kept.set('figure', name);
  if (kind !== 'examples') kept.set('x', kind);
  if (logarithmic) kept.set('log', 'true');
  history.replaceState(null, '', `compare?${kept}`);
  part('back').href = './?' + new URLSearchParams(models.map(({id}) => ['compare', id]));
}

// ---- The legend ----

const SVG = 'http://www.w3.org/2000/svg';
function shape(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// As Chart.js draws them, around the middle of a piece of line of 48 by 16.
const MARKERS = {
  circle: 'M20 8a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z', triangle: 'M24 4L28 11H20z', rect: 'M21 5H27V11H21z', rectRot: 'M24 4L28 8L24 12L20 8z',
  crossRot: 'M21 5L27 11M21 11L27 5', cross: 'M24 4V12M20 8H28', star: 'M24 4V12M20 8H28M21 5L27 11M21 11L27 5', dash: 'M24 8H28',
};

function swatch({colour, dash, marker}) {
  const svg = shape('svg', {class: `swatch ${colour}`, viewBox: '0 0 48 16', 'aria-hidden': 'true'});
  svg.append(shape('path', {d: 'M0 8H48', 'stroke-dasharray': dash.join(' ')}), shape('path', {d: MARKERS[marker], class: 'marker'}));
  return svg;
}

function makeModel(id, i) {
  const cell = (className, label) => {
    const td = make('td', {className, role: 'cell'});
    td.dataset.label = label;
    return td;
  };
  const remove = make('button', {type: 'button', className: 'remove', ariaLabel: `Remove ${id}`}, '✕');
  const model = {
    id, style: STYLES[i], points: new CurvePoints(), uid: '', answer: null, isMissing: false,
    // As on a model's page: the first request loads the model, and so does the first one after the server was unreachable.
    wantsLoading: true,
    state: cell('state', 'State'), examples: cell('number', 'Examples'), updates: cell('number', 'Updates'),
    lifetime: cell('number', 'Error'), latest: cell('number', 'Error, last 1,000'),
  };
  remove.addEventListener('click', () => removeModel(model));
  const name = make('td', {className: 'model', role: 'cell'}, make('a', {className: 'name', href: `models/${encodeURIComponent(id)}`}, id));
  const line = make('td', {className: 'line', role: 'cell'}, swatch(model.style));
  const last = make('td', {className: 'choice', role: 'cell'}, remove);
  model.row = make('tr', {role: 'row'}, line, name, model.state, model.examples, model.updates, model.lifetime, model.latest, last);
  return model;
}

let models = ids.slice(0, MOST_COMPARED).map(makeModel);
part('compared').tBodies[0].append(...models.map(({row}) => row));

function removeModel(model) {
  const next = model.row.nextElementSibling ?? model.row.previousElementSibling;
  models = models.filter((other) => other !== model);
  model.row.remove();
  (next?.querySelector('button') ?? part('back')).focus();
  keepAddress();
  show();
}

function showModel({answer, isMissing, state, examples, updates, lifetime, latest}) {
  if (isMissing) {
    delete state.dataset.key;
    setText(state, answer === null ? 'There is no such model.' : 'The model was deleted.');
  } else if (answer !== null) {
    showBadges(state, answer);
  }
  if (answer === null) return;
  const {report} = answer.model;
  setText(examples, count(report.examples));
  setText(updates, count(report.updates));
  setText(lifetime, percent(report.progressiveError));
  setText(latest, percent(report.windowError));
}

// ---- The plot ----

let chart = null;
// What the chart was made for: its lines and figure.
let chartKey = '';

function draw() {
  const {figure: name, kind, logarithmic} = choice();
  const {title, unit, tick, value, of} = FIGURES[name];
  const drawn = models.filter(({answer, points}) => answer !== null && points.all.length > 0);
  const key = [name, ...drawn.map(({id}) => id)].join();
  if (key !== chartKey) {
    if (chart !== null) drop(chart);
    const lines = drawn.map(({id, style}) => ({name: id, ...style}));
    chart = curve(part('plot'), {lines, y: {title: unit, tick, value}, legend: false});
    chartKey = key;
  }
  const series = drawn.map(({points, answer}) => lineOf(points.over(kind, answer.model.report), (p) => of(p, points))
                                                     .map(({p, y}) => ({x: p[kind], y: y ?? NaN, words: pointText(p)})));
  const isEmpty = !series.flat().some((point) => Number.isFinite(point.y));
  part('plot').parentElement.hidden = isEmpty;
  part('empty').hidden = !isEmpty;
  setText(part('empty'), `None of these models has this figure: ${title.toLowerCase()}.`);
  redraw(chart, series, {kind, logarithmic, label: `${title} over ${X_AXES[kind]}, of ${drawn.map(({id}) => id).join(', ')}`});
}

function trouble() {
  if (models.length === 0) return 'No model is chosen. Choose some in the list, by the boxes before their names.';
  return ids.length > MOST_COMPARED ? `The first ${MOST_COMPARED} of ${count(ids.length)} models are compared.` : '';
}

function show() {
  const text = trouble();
  setText(part('trouble'), text);
  part('trouble').hidden = text === '';
  part('content').hidden = models.length === 0;
  models.forEach(showModel);
  part('curves').hidden = !models.some(({answer}) => answer !== null);
  if (!part('curves').hidden) draw();
}

form.addEventListener('change', () => {
  keepAddress();
  show();
});
form.addEventListener('submit', (event) => event.preventDefault());

// ---- Updating the page ----

async function lookAt(model) {
  let answer;
  try {
    answer = await ask(`api/models/${encodeURIComponent(model.id)}`, {load: model.wantsLoading, after_revision: model.points.knownRevision});
  } catch (error) {
    model.wantsLoading ||= error instanceof NoAnswer;
    if (!(error instanceof ApiError && [400, 404].includes(error.status))) throw error;
    model.isMissing = true;
    return;
  }
  model.wantsLoading = false;
  model.isMissing = false;
  const {uid, revision} = answer.model;
  const isAnother = model.uid !== '' && (model.uid !== uid || Number(revision) < model.points.knownRevision);
  model.uid = uid;
  if (isAnother) {
    model.points.clear();
    return lookAt(model);
  }
  if (answer.inMemory) model.points.add(answer.model.learningCurve, Date.parse(answer.server.time));
  model.answer = answer;
  showServer(answer.server);
}

keepAddress();
keepLooking(async () => {
  // One after the other: the server prepares few answers at a time, and others are looking, too.
  for (const model of models) await lookAt(model);
  // Without a model there is no request: the list says whether the server is there.
  if (models.length === 0) showServer((await ask('api/models', {page_size: 1, points: 0})).server);
  show();
}, INTERVAL);
