// Settings as the API has them: proto-loader leaves out fields that a message does not have, and values that an enum does
// not have, so that a misspelt setting would be its default.

import { messageType } from './rpc.mjs';

/** Throws RangeError for a field or a named value that the API does not have, at any depth. name: of the message, with its package. */
export function checkFields(value, name) {
  check(value, [messageType(name)], []);
}

/** scopes: the type, after those that it is nested in. */
function check(value, scopes, path) {
  if (typeof value !== 'object' || value === null) return;
  const type = scopes.at(-1);
  const fields = new Map(type.field.map((field) => [field.name, field]));
  // What get() returns also says which field of a oneof is there.
  const oneofs = new Set(type.oneofDecl.map((oneof) => oneof.name));
  for (const [key, given] of Object.entries(value)) {
    const field = fields.get(key);
    if (field) checkValue(given, field, scopes, [...path, key]);
    else if (!oneofs.has(key) && given !== undefined) throw new RangeError(`${[...path, key].join('.')}: there is no such setting; ${hint(key, [...fields.keys()])}`);
  }
}

function checkValue(given, field, scopes, path) {
  const each = field.label === 'LABEL_REPEATED' && Array.isArray(given) ? given : [given];
  if (field.type === 'TYPE_MESSAGE') {
    const nested = resolve(field.typeName, scopes, 'nestedType');
    for (const one of each) {
      if (one !== undefined && one !== null && typeof one !== 'object') {
        const fields = nested?.at(-1).field.map(({ name }) => name) ?? [];
        throw new RangeError(`${path.join('.')}: ${JSON.stringify(one)}; expected an object${fields.includes(one) ? `: { ${one}: {} }` : fields.length > 0 ? ` with ${fields.join(', ')}` : ''}`);
      }
      if (nested) check(one, nested, path);
    }
  } else if (field.type === 'TYPE_ENUM') {
    const names = resolve(field.typeName, scopes, 'enumType')?.at(-1).value.map((value) => value.name);
    const wrong = names && each.find((one) => typeof one === 'string' && !names.includes(one));
    if (wrong !== undefined) throw new RangeError(`${path.join('.')}: ${JSON.stringify(wrong)} is no value of it; ${hint(wrong, names)}`);
  }
}

/** The scopes of a type that is named in the innermost of these; undefined if it is not found. */
function resolve(name, scopes, kind) {
  for (let depth = scopes.length; depth > 0; --depth) {
    const found = scopes[depth - 1][kind].find((nested) => nested.name === name);
    if (found) return [...scopes.slice(0, depth), found];
  }
  const found = messageType(name) ?? messageType(`perceptron.v1.${name}`);
  return found && [found];
}

/** Throws RangeError for an option that a method does not have. */
export function checkOptions(options, names) {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new RangeError(`${unknown}: there is no such option; ${hint(unknown, names)}`);
}

function hint(given, names) {
  const plain = (name) => name.toLowerCase().replaceAll('_', '');
  const text = plain(given);
  const near = names.map((name) => ({ name, edits: distance(text, plain(name)), begins: text.startsWith(plain(name)) || plain(name).startsWith(text) })).sort((a, b) => a.edits - b.edits);
  // A typing error; else a name that is longer or shorter: averagedPerceptron of averaged, though kernelPerceptron has more of its letters.
  const meant = near.find(({ edits }) => edits <= 2) ?? near.find(({ begins }) => begins) ?? near.find(({ edits }) => edits <= given.length / 3);
  return meant ? `did you mean ${meant.name}?` : `there are ${names.join(', ')}`;
}

/** The edits that make one text of another (Levenshtein). */
function distance(a, b) {
  let before = [...Array(b.length + 1).keys()];
  for (let i = 0; i < a.length; ++i) {
    const row = [i + 1];
    for (let j = 0; j < b.length; ++j) row.push(Math.min(before[j + 1] + 1, row[j] + 1, before[j] + (a[i] === b[j] ? 0 : 1)));
    before = row;
  }
  return before.at(-1);
}
