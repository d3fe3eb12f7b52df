// Shared by all pages: polling the server, formatting numbers, states and names, and adding text to the page, always as text.

// The most models in one comparison.
export const MOST_COMPARED = 8;

const grouped = new Intl.NumberFormat('en-GB');
const compact = new Intl.NumberFormat('en-GB', {notation: 'compact', maximumFractionDigits: 1});

// 64-bit numbers are strings in Protobuf's JSON.
export const count = (value) => grouped.format(Number(value ?? 0));
export const shortCount = (value) => (Math.abs(value) < 10000 ? grouped.format(value) : compact.format(value));
export const rateText = (perSecond) => (perSecond === undefined ? '–' : shortCount(Math.round(perSecond)));
export const percentTick = (value) => `${Number(value.toPrecision(3))} %`;
export const percent = (ratio) => (ratio === undefined ? '–' : (100 * ratio).toFixed(2) + ' %');
export const figure = (value) => {
  if (value === undefined) return '–';
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(3) : String(Number(value.toPrecision(4)));
  return text.replaceAll('-', '−');
};
export const bytes = (value) => {
  let size = Number(value ?? 0);
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (size < 1024) return `${Number(size.toPrecision(3))} ${unit}`;
    size /= 1024;
  }
  return `${Number(size.toPrecision(3))} TiB`;
};
// "1 d 12 h" for a duration as JSON has it, "129600s".
export const span = (duration) => {
  let left = parseFloat(duration);
  const parts = [];
  for (const [unit, seconds] of [['d', 86400], ['h', 3600], ['min', 60]]) {
    const whole = Math.floor(left / seconds);
    if (whole > 0) parts.push(`${count(whole)} ${unit}`);
    left -= whole * seconds;
  }
  if (left > 0 || parts.length === 0) parts.push(`${Number(left.toPrecision(3))} s`);
  return parts.join(' ');
};
export const clock = (date) => date.toLocaleTimeString('en-GB');
export const moment = (date) => date.toLocaleString('en-GB', {dateStyle: 'medium', timeStyle: 'medium'});

// An element with text or children; attributes are set as properties where the element has them.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Does not touch an element with the same text, so that a selection is kept.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const idOf = (model) => model.name.replace(/^models\//, '');

const STATES = {
  learning: ['●', 'calm'],
  converged: ['✓', 'good'],
  drifting: ['▲', 'warn'],
  refuted: ['✕', 'bad'],
  'not separable': ['✕', 'bad'],
};

function badge(sign, text, tone, title) {
  return make('span', {className: `badge ${tone}`, title}, make('span', {'aria-hidden': 'true'}, sign + ' '), text);
}

// The state as text, each with its own sign and colour.
export function showBadges(element, answer) {
  const state = answer.convergence;
  const key = [state, answer.inMemory, answer.model.state, answer.model.report.examples === '0'].join();
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  const badges = [];
  if (state === 'learning' && answer.model.report.examples === '0') {
    badges.push(badge('○', 'no examples yet', 'mute', 'It has learned no example yet.'));
  } else if (state in STATES) {
    badges.push(badge(STATES[state][0], state, STATES[state][1], ''));
  }
  if (!answer.inMemory) badges.push(badge('○', 'not in memory', 'mute', 'It is loaded on its next use.'));
  if (answer.model.state === 'MODEL_STATE_FROZEN')
    badges.push(badge('❙❙', 'frozen', 'mute', 'The model predicts and does not learn.'));
  element.replaceChildren(...badges);
}

// What a point of a learning curve is, for its tooltip.
export const pointText = (p) => `example ${count(p.examples)}, update ${count(p.revision)}` +
  (Number.isFinite(p.time) ? `, ${moment(new Date(p.time))}` : '');

// An error that the server returned.
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// The server is unreachable, or its response incomplete.
export class NoAnswer extends Error {}

async function read(url) {
  try {
    const response = await fetch(url, {cache: 'no-store', signal: AbortSignal.timeout(15000)});
    return {status: response.status, ok: response.ok, text: await response.text()};
  } catch (error) {
    throw new NoAnswer(error.message);
  }
}

// The JSON at a path as an object. Throws ApiError or NoAnswer.
export async function ask(path, parameters = {}) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const {status, ok, text} = await read(url);
  if (ok) return JSON.parse(text);
  // Errors are JSON or a line of text.
  throw new ApiError(status, text.startsWith('{') ? JSON.parse(text).message : text.trim());
}

export function showServer(server) {
  const words = [`${count(server.models)} ${server.models === '1' ? 'model' : 'models'}`, `${count(server.modelsInMemory)} in memory`,
                 `${bytes(server.memoryBytes)} of ${bytes(server.memoryBudgetBytes)}`, `version ${server.version}`];
  if (server.draining) words.push('stopping');
  setText(document.getElementById('server'), words.join(' · '));
}

function complaint(error, since) {
  if (error instanceof NoAnswer) return `no answer${since}; trying again`;
  if (error instanceof ApiError) return error.status === 404 ? 'not there' : `refused${since}: ${error.message}`;
  console.error(error);
  return `the page itself failed: ${error.message}`;
}

// Calls `look` at once and then every `interval` milliseconds while the page is visible, one call at a time; after a failure less often.
// Shows in the header when it last succeeded, or since when the server has not responded.
export function keepLooking(look, interval) {
  const live = document.getElementById('live');
  let last = null;
  let failures = 0;
  let timer = null;
  let looking = false;
  const report = (text, lost) => {
    setText(live, text);
    live.classList.toggle('lost', lost);
    // Screen readers must not read the clock every second.
    live.setAttribute('aria-live', lost ? 'polite' : 'off');
  };
  const again = async () => {
    clearTimeout(timer);
    if (looking || document.hidden) return;
    looking = true;
    try {
      await look();
      last = new Date();
      failures = 0;
      report(`live · ${clock(last)}`, false);
    } catch (error) {
      ++failures;
      const since = last === null ? '' : ` since ${clock(last)}`;
      report(complaint(error, since), true);
    }
    looking = false;
    if (!document.hidden) timer = setTimeout(again, interval * Math.min(1 + failures, 15));
  };
  document.addEventListener('visibilitychange', again);
  again();
  return again;
}

// Names and texts of models may hold any characters and be long.

function writtenOut(character) {
  const code = character.codePointAt(0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : '\\u' + code.padStart(4, '0');
}

// Escapes characters that are invisible (controls, zero width, blanks other than a space, unassigned) or change the direction of the
// text.
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}/gu;
export const printable = (text) => text.replace(UNSEEN, writtenOut);

// A name in a form that is different for different names: also escapes blanks that a page would collapse, and doubles backslashes where
// an escape could be meant literally.
const HIDDEN = new RegExp(`${UNSEEN.source}|^ +| +$| (?= )`, 'gu');
export function exactly(name) {
  if (name.search(HIDDEN) < 0 && !name.includes('\\u')) return name;
  return name.replaceAll('\\', '\\\\').replace(HIDDEN, (characters) => [...characters].map(writtenOut).join(''));
}

// The part of a name that fits into a list of names.
export function beginning(name) {
  const characters = [...exactly(name)];
  return characters.length <= 60 ? characters.join('') : characters.slice(0, 60).join('') + '…';
}

// Names that the reader has expanded: they stay expanded when they are drawn again.
const unfolded = new Set();

// A name of any length; a long one is abbreviated until the reader expands it.
export function nameElement(name) {
  const text = exactly(name);
  if (text.length <= 100) return make('span', {dir: 'auto'}, text);
  const button = make('button', {type: 'button', className: 'folded', dir: 'auto', title: 'The whole name, or its beginning'}, text);
  const show = () => button.setAttribute('aria-expanded', unfolded.has(name));
  button.addEventListener('click', () => {
    if (!unfolded.delete(name)) unfolded.add(name);
    show();
  });
  show();
  return button;
}
