// What the list shows: filters, order, page, and the models chosen for comparison. Kept in the page's address, so that a reload, a
// bookmark and the browser's back button have it, too. Filters have the names of the parameters of api/models.

import {MOST_COMPARED} from './page.js';

const FILTERS = ['search', 'state', 'min_error', 'active'];
const NAMES = [...FILTERS, 'order_by', 'page'];

function read() {
  const parameters = new URLSearchParams(location.search);
  const query = Object.fromEntries(NAMES.map((name) => [name, parameters.get(name) ?? '']));
  query.compare = [...new Set(parameters.getAll('compare'))].slice(0, MOST_COMPARED);
  return query;
}

let query = read();
const listeners = [];
const notify = () => listeners.forEach((listener) => listener(query));

// A new object after each change.
export const currentQuery = () => query;
// Calls `listener` with the query after each change.
export const onQuery = (listener) => listeners.push(listener);

// The parameters of the query that are set.
export const parametersOf = (one) => Object.fromEntries(NAMES.filter((name) => one[name] !== '').map((name) => [name, one[name]]));
export const isFiltered = (one) => FILTERS.some((name) => one[name] !== '');

export function addressOf(one) {
  const parameters = new URLSearchParams(parametersOf(one));
  for (const id of one.compare) parameters.append('compare', id);
  return './' + (parameters.toString() === '' ? '' : `?${parameters}`);
}

// Applies `changes`, and goes to the first page unless they say another. With `replace` the browser's back button skips this change.
export function changeQuery(changes, {replace = false} = {}) {
  const next = {...query, page: '', ...changes};
  if (addressOf(next) === addressOf(query)) return;
  query = next;
  history[replace ? 'replaceState' : 'pushState'](null, '', addressOf(query));
  notify();
}

addEventListener('popstate', () => {
  query = read();
  notify();
});
