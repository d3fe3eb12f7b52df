// Texts and names of models, which may hold any characters and be long, in the form that the page shows.

import {make} from './page.js';

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
