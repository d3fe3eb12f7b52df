// Texts and names from models, which may hold anything and be long: as the page shows them.

import {make} from './page.js';

function writtenOut(character) {
  const code = character.codePointAt(0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : '\\u' + code.padStart(4, '0');
}

// Texts may hold anything: what would not be seen (controls, what has no width or only looks like a blank, what no font has), or
// would turn the rest around, is written out.
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}/gu;
export const printable = (text) => text.replace(UNSEEN, writtenOut);

// A name, so that no two look the same that differ in what cannot be seen: blanks that a page would swallow are written out too,
// and backslashes doubled where what is written out could be meant literally.
const HIDDEN = new RegExp(`${UNSEEN.source}|^ +| +$| (?= )`, 'gu');
export function exactly(name) {
  if (name.search(HIDDEN) < 0 && !name.includes('\\u')) return name;
  return name.replaceAll('\\', '\\\\').replace(HIDDEN, (characters) => [...characters].map(writtenOut).join(''));
}

// What of a name fits into a list of names.
export function beginning(name) {
  const characters = [...exactly(name)];
  return characters.length <= 60 ? characters.join('') : characters.slice(0, 60).join('') + '…';
}

// Names that the reader has unfolded: they stay so when they are drawn anew.
const unfolded = new Set();

// A name of any length: of a long one the beginning, until it is asked for the rest.
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
