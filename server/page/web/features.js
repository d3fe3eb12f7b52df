// The top features on a model's page, in a table for each class.

import {count, figure, make, setText} from './page.js';
import {nameElement} from './names.js';

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
    note = features.firstRevision === features.lastRevision ? `At revision ${count(features.firstRevision)}.`
      : `Read while the model learned, from revision ${count(features.firstRevision)} to ${count(features.lastRevision)}.`;
  }
  setText(part('features-note'), note.charAt(0).toUpperCase() + note.slice(1));
  part('features').replaceChildren(...chosenClasses(lists).map((list) => featureTable(model, list, model.learner.classes !== undefined)));
}

part('class-search').addEventListener('input', () => showFeatures(lastFeatures));
