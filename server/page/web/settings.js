// A model's settings, as a list of headings and texts.

import {bytes, count, figure, make, moment, setText} from './page.js';
import {beginning} from './names.js';

function describeSpace(space) {
  const map = space.map === undefined ? '' : `, through a feature map (${Object.keys(space.map)[0] ?? ''})`;
  if (space.dense) return `vectors of ${count(space.dense.dimension)} dimensions${map}`;
  if (space.hashed) return `names hashed into ${count(2 ** space.hashed.bits)} slots${map}`;
  if (space.named) return `named, at most ${count(space.named.maxFeatures)}${map}`;
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
  const kept = model.retention;
  if (kept === undefined) return 'none';
  return `${count(kept.keptUpdates)} of updates, ${count(kept.keptSample)} in the sample` +
         (kept.complete ? ' (all examples seen)' : '') + `; ${bytes(kept.memoryBytes)}`;
}

// Fills the list with the model's settings.
export function showSettings(list, model) {
  const kind = model.learner.kind.replace(/^LEARNER_KIND_/, '').toLowerCase().replaceAll('_', ' ');
  const pairs = [
    ['Learner', kind + (model.learner.stepSize === undefined ? '' : `, step size ${figure(model.learner.stepSize)}`)],
    ['Features', describeSpace(model.featureSpace)],
    ['Labels', describeLabels(model)],
    ['Stored examples', describeStored(model)],
    ['Revision', count(model.revision)],
    ['Created', moment(new Date(model.createTime))],
    ['Changed', moment(new Date(model.updateTime))],
  ];
  if (model.marginOfInterest > 0) pairs.push(['Margin of interest', figure(model.marginOfInterest)]);
  const flat = pairs.flat();
  if (list.children.length !== flat.length)
    list.replaceChildren(...pairs.flatMap(([name]) => [make('dt', {}, name), make('dd')]));
  flat.forEach((text, i) => setText(list.children[i], text));
}
