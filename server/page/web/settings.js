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

const rules = ['perceptron', 'marginPerceptron', 'passiveAggressive', 'passiveAggressiveI', 'passiveAggressiveIi',
               'arow', 'softConfidenceWeighted', 'logisticRegression', 'batchPerceptron', 'kernelPerceptron'];
const wrappers = ['averaged', 'pocket', 'voted'];

// "passive aggressive i" for passiveAggressiveI.
function words(name) {
  return name.replaceAll(/[A-Z]/g, (letter) => ' ' + letter.toLowerCase());
}

function describeLearner(learner) {
  const rule = rules.find((name) => learner[name] !== undefined);
  const wrapper = wrappers.find((name) => learner[name] !== undefined);
  if (rule === undefined) return '–';
  const settings = Object.entries({...learner[rule], ...learner[wrapper]})
      .filter(([, value]) => typeof value === 'number').map(([name, value]) => `, ${words(name)} ${figure(value)}`);
  return (wrapper === undefined ? '' : words(wrapper) + ' ') + words(rule) + settings.join('');
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

// Fills the list with the model's settings.
export function showSettings(list, model) {
  const pairs = [
    ['Learner', describeLearner(model.learner)],
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
