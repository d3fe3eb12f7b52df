// One page of the list of models, kept up to date. The first response has the curves; later ones have the current state alone.

import {ask, count, idOf, keepLooking, make, percent, printable, setText, showBadges, showServer} from './page.js';
import {drop, windowClearSince, sparkline} from './curves.js';

const PAGE_SIZE = 25;
const FIRST_POINTS = 48;
const MOST_POINTS = 160;
const INTERVAL = 1000;

const parameters = new URLSearchParams(location.search);
const search = parameters.get('search') ?? '';
const pageToken = parameters.get('page_token') ?? '';
const table = document.getElementById('models');
const rows = new Map();
let known = false;

document.getElementById('search').value = search;

function makeRow(id) {
  const cell = (className, label) => {
    const td = make('td', {className, role: 'cell'});
    td.dataset.label = label;
    return td;
  };
  const canvas = make('canvas', {role: 'img'});
  const row = {
    link: make('a', {className: 'name', href: `models/${encodeURIComponent(id)}`}, id),
    description: make('div', {className: 'description', dir: 'auto'}),
    state: cell('state', 'State'),
    examples: cell('number', 'Examples'),
    mistakes: cell('number', 'Mistakes'),
    updates: cell('number', 'Updates'),
    lifetime: cell('number', 'Error'),
    latest: cell('number', 'Error, last 1,000'),
    canvas,
    points: [],
    // The curve is received once, and continued with the current state of each response.
    whole: false,
  };
  const name = make('td', {role: 'cell'}, row.link, row.description);
  const curve = make('td', {className: 'curve', role: 'cell'}, make('div', {className: 'spark'}, canvas));
  row.element = make('tr', {role: 'row'}, name, row.state, row.examples, row.mistakes, row.updates, row.lifetime, row.latest, curve);
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

function addPoints(row, model) {
  const news = pointsOf(model).filter((point) => row.points.length === 0 || point.x > row.points.at(-1).x);
  if (news.length === 0) return;
  row.points = thin(row.points.concat(news));
  row.chart ??= sparkline(row.canvas);
  row.canvas.parentElement.classList.add('drawn');
  // With few examples the error is noise.
  const early = Math.min(100, row.points.at(-1).x / 10);
  const drawn = row.points.filter((point) => point.x >= early);
  row.chart.data.datasets[0].data = drawn;
  row.chart.data.datasets[0].pointRadius = drawn.length === 1 ? 3 : 0;
  row.chart.update();
}

function showRow(row, entry) {
  const {model} = entry;
  const {report} = model;
  setText(row.description, printable(model.description));
  row.description.hidden = model.description === '';
  showBadges(row.state, entry);
  setText(row.examples, count(report.examples));
  setText(row.mistakes, count(report.mistakes));
  setText(row.updates, count(report.updates));
  setText(row.lifetime, percent(report.progressiveError));
  setText(row.latest, percent(report.windowError));
  addPoints(row, model);
  row.whole = entry.inMemory;
  row.canvas.setAttribute('aria-label', row.points.length === 0 ? 'no learning curve: the model is not in memory, or has evaluated no example'
    : `error over the last 1,000 examples: from ${percent(row.points[0].y)} to ${percent(row.points.at(-1).y)}`);
}

function removeRow(uid) {
  const row = rows.get(uid);
  if (row.chart) drop(row.chart);
  row.element.remove();
  rows.delete(uid);
}

function showModels(entries) {
  const present = new Set(entries.map((entry) => entry.model.uid));
  for (const uid of [...rows.keys()].filter((uid) => !present.has(uid))) removeRow(uid);
  const body = table.tBodies[0];
  entries.forEach((entry, i) => {
    const {uid} = entry.model;
    if (!rows.has(uid)) rows.set(uid, makeRow(idOf(entry.model)));
    const row = rows.get(uid);
    if (body.rows[i] !== row.element) body.insertBefore(row.element, body.rows[i] ?? null);
    showRow(row, entry);
  });
  table.hidden = entries.length === 0;
}

function summary(found, server, more) {
  if (found > 0 && search === '') return '';
  if (found > 0) return `${more ? 'The first ' : ''}${count(found)} with “${search}” in name or description:`;
  if (search !== '') return `No model has “${search}” in its name or description.`;
  if (pageToken !== '') return 'There are no more models.';
  return server.models === '0' ? 'There are no models yet. “perceptronctl create NAME --named” makes one.' : '';
}

function showPages(next) {
  const link = (id, token) => {
    const element = document.getElementById(id);
    const query = new URLSearchParams();
    if (search !== '') query.set('search', search);
    if (token) query.set('page_token', token);
    element.href = './' + (query.toString() === '' ? '' : `?${query}`);
    return element;
  };
  link('first', '').hidden = pageToken === '';
  link('next', next).hidden = next === '';
  document.getElementById('pages').hidden = pageToken === '' && next === '';
}

// For models that are not in memory only what is stored is known.
function unloaded(entries) {
  const absent = entries.filter((entry) => !entry.inMemory).length;
  if (absent === 0) return '';
  const who = absent === entries.length ? 'None of these is' : `${absent} of these ${absent === 1 ? 'is' : 'are'} not`;
  return `${who} in memory: state and learning curve appear once a model is used or its page is opened.`;
}

// Models that have no figures, since they cannot be read.
function unread(names) {
  if (names.length === 0) return '';
  return `Cannot be read: ${names.map((name) => printable(name.slice('models/'.length))).join(', ')}. “perceptronctl get NAME” says why.`;
}

// A search may need several requests: each searches at most 10,000 models.
async function readPage(points) {
  const entries = [];
  const unreachable = [];
  let token = pageToken;
  while (true) {
    const answer = await ask('api/models', {
      search, page_token: token, page_size: PAGE_SIZE - entries.length - unreachable.length, points,
    });
    entries.push(...answer.models);
    unreachable.push(...answer.unreachable);
    token = answer.nextPageToken;
    const listed = entries.length + unreachable.length;
    if (token === '' || listed >= PAGE_SIZE) return {entries, unreachable, next: token, server: answer.server};
  }
}

keepLooking(async () => {
  let page = await readPage(known ? 1 : FIRST_POINTS);
  // The whole curve of a model that is new or was loaded is needed.
  if (known && page.entries.some((entry) => entry.inMemory && !rows.get(entry.model.uid)?.whole)) page = await readPage(FIRST_POINTS);
  known = true;
  const {entries, unreachable, next, server} = page;
  showServer(server);
  showModels(entries);
  setText(document.getElementById('summary'), summary(entries.length + unreachable.length, server, next !== '' || pageToken !== ''));
  setText(document.getElementById('unread'), unread(unreachable));
  setText(document.getElementById('unloaded'), unloaded(entries));
  showPages(next);
}, search === '' ? INTERVAL : 2 * INTERVAL);
