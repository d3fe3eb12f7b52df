// The controls of the list: filters, sorting, pages and the choice of models to compare. They show the query, and change it.

import {addressOf, changeQuery, currentQuery, isFiltered, onQuery} from './query.js';
import {MOST_COMPARED, count, make, setText} from './page.js';

const part = (id) => document.getElementById(id);
const form = part('filters');

// ---- Filters ----

// The address has a ratio, the field a percentage. What is no number the server refuses.
const toPercent = (ratio) => (ratio === '' || Number.isNaN(Number(ratio)) ? '' : String(Number((100 * Number(ratio)).toPrecision(12))));
const toRatio = (percent) => (Number(percent) > 0 ? String(Number((Number(percent) / 100).toPrecision(12))) : '');

// A field that the reader is typing into is left alone.
function show(field, value) {
  if (field !== document.activeElement && field.value !== value) field.value = value;
}

function showFilters(query) {
  show(part('search'), query.search);
  show(part('state'), query.state);
  show(part('min-error'), toPercent(query.min_error));
  part('active').checked = query.active === 'true';
  part('clear').hidden = !isFiltered(query);
}

const filters = () => ({search: part('search').value, state: part('state').value, min_error: toRatio(part('min-error').value),
                        active: part('active').checked ? 'true' : ''});

// While the reader types the address is replaced, so that the back button does not go through the letters.
const TYPING_PAUSE = 150;
let typing = null;
form.addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => changeQuery(filters(), {replace: true}), TYPING_PAUSE);
});
// A choice, or the end of typing.
form.addEventListener('change', (event) => {
  clearTimeout(typing);
  changeQuery(event.target === part('order') ? {order_by: part('order').value} : filters());
});
part('clear').addEventListener('click', () => {
  clearTimeout(typing);
  part('search').focus();
  part('search').value = '';
  changeQuery({search: '', state: '', min_error: '', active: ''});
});

// ---- Order ----

const buttons = [...document.querySelectorAll('#models thead button')];
// Numbers are sorted from the largest at first, names and states from the beginning of their order.
const isText = (button) => ['name', 'state'].includes(button.dataset.order);

function orderOf(query) {
  const [field, direction] = (query.order_by || 'name').split(' ');
  return {field, descending: direction === 'desc'};
}
const orderText = (field, descending) => (field === 'name' && !descending ? '' : field + (descending ? ' desc' : ''));

function sort(button) {
  const {field, descending} = orderOf(currentQuery());
  const own = button.dataset.order;
  changeQuery({order_by: orderText(own, own === field ? !descending : !isText(button))});
}

function showOrder(query) {
  const {field, descending} = orderOf(query);
  for (const button of buttons) {
    const cell = button.closest('th');
    const sorted = button.dataset.order === field;
    if (sorted) cell.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    else cell.removeAttribute('aria-sort');
    setText(button.querySelector('.arrow'), sorted ? (descending ? '▼' : '▲') : '');
  }
  part('order').value = orderText(field, descending);
}

buttons.forEach((button, i) => {
  button.append(make('span', {className: 'arrow', ariaHidden: 'true'}));
  button.addEventListener('click', () => sort(button));
  button.addEventListener('keydown', (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (step !== undefined) buttons[i + step]?.focus();
  });
});

// Where the table's head has no room, a list has each order.
for (const button of buttons) {
  const directions = isText(button) ? [[false, ''], [true, ', reversed']] : [[true, ', largest first'], [false, ', smallest first']];
  for (const [descending, words] of directions)
    part('order').append(make('option', {value: orderText(button.dataset.order, descending)}, button.textContent.trim() + words));
}

// ---- Pages ----

// `pages` is how many there are.
export function showPages(page, pages) {
  part('pages').hidden = pages <= 1;
  setText(part('page'), `Page ${count(page)} of ${count(pages)}`);
  for (const [id, number] of [['first', 1], ['previous', page - 1], ['next', page + 1], ['last', pages]]) {
    const link = part(id);
    const leads = number >= 1 && number <= pages && number !== page;
    link.dataset.page = number === 1 ? '' : number;
    if (leads) link.href = addressOf({...currentQuery(), page: link.dataset.page});
    else link.removeAttribute('href');
    // A link without an address is no link: it is said to be one that leads nowhere now.
    link.role = leads ? null : 'link';
    link.ariaDisabled = leads ? null : 'true';
  }
}

part('pages').addEventListener('click', (event) => {
  const link = event.target.closest('a[href]');
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  changeQuery({page: link.dataset.page});
  part('main').scrollIntoView();
});

// ---- Models to compare ----

export const isChosen = (id) => currentQuery().compare.includes(id);
export const isFull = () => currentQuery().compare.length >= MOST_COMPARED;

export function choose(id, chosen) {
  const {compare, page} = currentQuery();
  const others = compare.filter((other) => other !== id);
  changeQuery({compare: chosen ? [...others, id].slice(0, MOST_COMPARED) : others, page}, {replace: true});
}

function chip(id) {
  const button = make('button', {type: 'button', className: 'chip', ariaLabel: `Do not compare ${id}`}, make('span', {}, id),
                      make('span', {ariaHidden: 'true'}, '✕'));
  button.addEventListener('click', () => {
    const next = button.nextElementSibling ?? button.previousElementSibling;
    choose(id, false);
    // The chips are made anew: the focus goes to the one that takes this one's place.
    if (next !== null) [...part('chips').children].find((other) => other.ariaLabel === next.ariaLabel)?.focus();
  });
  return button;
}

function showSelection({compare}) {
  part('selection').hidden = compare.length === 0;
  setText(part('selection-text'), compare.length >= MOST_COMPARED ? `To compare, ${MOST_COMPARED} at most:` : 'To compare:');
  part('chips').replaceChildren(...compare.map(chip));
  part('compare').href = 'compare?' + new URLSearchParams(compare.map((id) => ['model', id]));
}

part('deselect').addEventListener('click', () => changeQuery({compare: [], page: currentQuery().page}, {replace: true}));

// ---- All ----

function showControls(query) {
  showFilters(query);
  showOrder(query);
  showSelection(query);
}
onQuery(showControls);
showControls(currentQuery());
