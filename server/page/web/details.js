// A model's settings, as a list of headings and texts; the members of the learner auto; and its top features, in a table for each class.

import {beginning, bytes, count, figure, make, moment, nameElement, percent, setText, span} from './page.js';

function describeSpace(space) {
  const map = space.map === undefined ? '' : `, through a feature map (${Object.keys(space.map)[0] ?? ''})`;
  if (space.dense) return `vectors of ${count(space.dense.dimension)} dimensions${map}`;
  if (space.hashed) return `names hashed into ${count(2 ** space.hashed.bits)} slots${map}`;
  if (space.named) return `named, at most ${count(space.named.maxFeatures)}${map}`;
  if (space.text) return `texts, n-grams hashed into ${count(2 ** space.text.bits)} slots${map}`;
  if (space.composition) return `predictions of ${space.composition.inputs.map((input) => input.model.replace(/^models\//, '')).join(', ')}${map}`;
  return '–';
}

function describeLabels(model) {
  const names = model.labelNames.map(beginning);
  const classes = model.learner.classes;
  if (classes === undefined) return names.length === 2 ? `−1 ${names[0]}, +1 ${names[1]}` : '−1 and +1';
  const shown = names.slice(0, 12).join(', ') + (names.length > 12 ? `, and ${names.length - 12} more` : '');
  return `${names.length === 0 ? 'numbers' : shown}; at most ${count(classes.maxClasses)} classes`;
}

function describeStored(model) {
  const stored = model.storedExamples;
  if (stored === undefined) return 'none';
  return `${count(stored.updates)} of updates, ${count(stored.sample)} in the sample` +
         (stored.complete ? ' (all examples seen)' : '') + `; ${bytes(stored.memoryBytes)}`;
}

function describeKept({maxAge, maxBytes, durable}) {
  return `for ${span(maxAge)}, at most ${bytes(maxBytes)}` + (durable ? ', across restarts' : '');
}

// Fills the list with the model's settings; `learner` is the learner's text.
export function showSettings(list, model, learner) {
  const pairs = [
    ['Learner', learner],
    ['Features', describeSpace(model.featureSpace)],
    ['Labels', describeLabels(model)],
    ['Stored examples', describeStored(model)],
    ['Created', moment(new Date(model.createTime))],
    ['Changed', moment(new Date(model.updateTime))],
  ];
  if (model.storedPredictions !== undefined) pairs.splice(4, 0, ['Kept predictions', describeKept(model.storedPredictions)]);
  if (model.expireTime !== undefined) {
    pairs.push(['Expires', `${moment(new Date(model.expireTime))}, ${span(model.expireAfter)} after its last use, if it is not used before`]);
  }
  if (model.marginOfInterest > 0) pairs.push(['Margin of interest', figure(model.marginOfInterest)]);
  // Of a model that another server of the fleet writes.
  if (model.staleSince !== undefined) pairs.push(['Known until', `${moment(new Date(model.staleSince))}; another server writes it`]);
  const flat = pairs.flat();
  if (list.children.length !== flat.length)
    list.replaceChildren(...pairs.flatMap(([name]) => [make('dt', {}, name), make('dd')]));
  flat.forEach((text, i) => setText(list.children[i], text));
}

// Fills the section with the learners whose votes the learner auto counts; hides it for a model without.
export function showMembers(section, {members}) {
  section.hidden = members.length === 0;
  const row = ({learner, vote, mistakes, retired}) =>
      make('tr', {}, make('td', {}, learner), make('td', {className: 'number'}, retired ? 'retired' : percent(vote)),
           make('td', {className: 'number'}, count(mistakes)));
  section.querySelector('tbody').replaceChildren(...members.map(row));
}

// Features of a model with two labels, and of each class of a model with several.
export const MAX_FEATURES = 20;
const MAX_FEATURES_PER_CLASS = 6;
// The most classes that are shown; a search chooses among more.
const MAX_CLASSES = 12;

const part = (name) => document.getElementById(name);

// The latest response that has features.
let lastFeatures = null;

function featureName(model, weights, i) {
  if (weights.names.length > 0) return weights.names[i];
  const index = weights.indices[i];
  const input = model.featureSpace.composition?.inputs[index];
  if (input !== undefined) return input.model.replace(/^models\//, '');
  return `${model.featureSpace.hashed ? 'slot' : 'feature'} ${index}`;
}

function evidenceOf(model, several, value) {
  if (several) return value > 0 ? 'for' : 'against';
  return value > 0 ? model.labelNames[1] ?? '+1' : model.labelNames[0] ?? '−1';
}

const nameOf = (list) => (list.className === '' ? `class ${list.classNumber}` : list.className);

// All classes if they are few, otherwise the first ones whose name contains the search text.
function chosenClasses(lists) {
  part('classes').hidden = lists.length <= MAX_CLASSES;
  if (lists.length <= MAX_CLASSES) return lists;
  const sought = part('class-search').value.trim().toLowerCase();
  const found = lists.filter((list) => nameOf(list).toLowerCase().includes(sought));
  const shown = found.length > MAX_CLASSES ? `The first ${MAX_CLASSES} of ${count(found.length)}` : count(found.length);
  setText(part('classes-note'), `${shown} ${found.length === 1 ? 'class' : 'classes'}${sought === '' ? '' : ` with “${sought}”`}`);
  return found.slice(0, MAX_CLASSES);
}

function featureTable(model, list, several) {
  const {weights} = list;
  const maximum = Math.max(...weights.values.map(Math.abs));
  const className = nameOf(list);
  const limit = several ? MAX_FEATURES_PER_CLASS : MAX_FEATURES;
  const rows = weights.values.slice(0, limit).map((value, i) => {
    const bar = make('span');
    bar.style.width = `${(100 * Math.abs(value) / maximum).toFixed(1)}%`;
    return make('tr', {}, make('td', {}, nameElement(featureName(model, weights, i))),
                make('td', {className: 'number'}, figure(value)), make('td', {}, nameElement(evidenceOf(model, several, value))),
                make('td', {'aria-hidden': 'true'}, make('div', {className: value > 0 ? 'bar' : 'bar minus'}, bar)));
  });
  const caption = make('caption', {}, ...(several ? [nameElement(className), ': '] : []), `bias ${figure(weights.bias)}`);
  const head = make('tr', {}, ...['Feature', 'Weight', several ? 'Evidence' : 'Evidence for', ''].map(
                                  (text, i) => make(text === '' ? 'td' : 'th', text === '' ? {} : {scope: 'col', className: i === 1 ? 'number' : ''}, text)));
  return make('table', {}, caption, make('thead', {}, head), make('tbody', {}, ...rows));
}

// Shows the top features of a response; does nothing if it has none.
export function showFeatures(answer) {
  const {topFeatures: features, model} = answer;
  if (features === undefined) return;
  lastFeatures = answer;
  const lists = features.lists.filter((list) => list.weights.values.length > 0);
  let note = features.absent;
  if (note === '' && lists.length === 0) note = 'All weights are zero.';
  if (note === '') {
    note = features.firstRevision === features.lastRevision ? '' : 'Read while the model learned: the weights are not all of one revision.';
  }
  setText(part('features-note'), note.charAt(0).toUpperCase() + note.slice(1));
  part('features').replaceChildren(...chosenClasses(lists).map((list) => featureTable(model, list, model.learner.classes !== undefined)));
}

part('class-search').addEventListener('input', () => showFeatures(lastFeatures));
