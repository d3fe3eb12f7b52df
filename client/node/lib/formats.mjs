// Example files, read row by row: two of the formats that perceptronctl takes.
//
// text:      label<TAB>text; the features are the text's words, valued by how often each occurs.
// svmlight:  label index:value index:value ... # comment
//
// A row is {features: Map of names or indices to values, label: a name, -1 or +1}.

/** A line that is no example; the message says where and why. */
export class BadLine extends Error {}

// Lines are read with a character for each byte (latin1), so that words are what they are to the server's own tools: ASCII
// letters, digits, apostrophes and bytes beyond ASCII.
const WORD = /[a-z0-9'\x80-\xff]+/g;
const FEATURE = /^(\d+):([-+]?[\d.]+(?:[eE][-+]?\d+)?)$/;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const asciiLower = (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

function utf8(bytes) {
  try {
    return decoder.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new BadLine('it is not UTF-8');
  }
}

export function parseText(line) {
  const tab = line.indexOf('\t');
  if (tab < 0) throw new BadLine('no tab: expected a label, a tab and a text');
  const features = new Map();
  for (const [word] of asciiLower(line.slice(tab + 1)).matchAll(WORD)) {
    const name = utf8(word);
    features.set(name, (features.get(name) ?? 0) + 1);
  }
  return { features, label: utf8(line.slice(0, tab)) };
}

/** For files whose first feature has this number, 0 or 1. */
export function svmlightParser(indexBase) {
  return (line) => {
    const [labelWord, ...words] = line.split('#', 1)[0].split(/[ \t]+/).filter(Boolean);
    if (labelWord === undefined) return undefined;
    const features = new Map();
    for (const word of words) {
      const [, index, value] = FEATURE.exec(word) ?? [];
      if (!Number.isFinite(Number(value))) throw new BadLine(`"${word}" is no feature: expected index:value`);
      if (Number(index) < indexBase) throw new BadLine('index 0 in a file whose indices start at 1; if they start at 0, say --index-base 0');
      features.set(Number(index) - indexBase, Number(value));
    }
    const label = Number(labelWord);
    if (label !== 1 && label !== -1) throw new BadLine(`label "${labelWord}" is neither -1 nor +1`);
    return { features, label };
  };
}

/** The lines of a stream of bytes, without their ends; '\r' and other line separators within a line stay. */
async function* linesOf(input) {
  let rest = '';
  for await (const chunk of input.setEncoding('latin1')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    yield* lines;
  }
  if (rest) yield rest;
}

/** The rows of a readable stream, in their order. Throws BadLine at the first line that is none. */
export async function* readRows(input, name, parse) {
  let number = 0;
  for await (const line of linesOf(input)) {
    number += 1;
    const text = line.replace(/\r+$/, '');
    if (!text) continue;
    try {
      const row = parse(text);
      if (row) yield row;
    } catch (error) {
      throw error instanceof BadLine ? new BadLine(`${name}:${number}: ${error.message}`) : error;
    }
  }
}
