// Example files, read row by row: two of the formats that perceptronctl takes.
//
// text:      label<TAB>text; the features are the text's words, valued by how often each occurs.
// svmlight:  label index:value index:value ... # comment
//
// Where no label is required, a line of text is all text if it has no tab, or no label of the model before the first; and
// svmlight may begin with its first feature.
//
// A row is {features: Map of names or indices to values, label: as Labels.read() has it, or undefined}.

import { BadLine } from './errors.mjs';

// Lines are read with a character for each byte (latin1), so that words are what they are to the server's own tools: ASCII
// letters, digits, apostrophes and bytes beyond ASCII.
const WORD = /[a-z0-9'\x80-\xff]+/g;
const FEATURE = /^(\d+):([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)$/;
const MOST_UINT32 = 2 ** 32 - 1;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const asciiLower = (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

function utf8(bytes) {
  try {
    return decoder.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new BadLine('it is not UTF-8');
  }
}

/** Throws BadLine if it is none of the model's and one is required. */
function readLabel(word, labels, required) {
  try {
    return labels.read(utf8(word));
  } catch (error) {
    if (required || !(error instanceof BadLine)) throw error;
    return undefined;
  }
}

export function textParser(labels, required) {
  return (line) => {
    const tab = line.indexOf('\t');
    if (required && tab < 0) throw new BadLine('no tab: expected a label, a tab and a text');
    const label = tab < 0 ? undefined : readLabel(line.slice(0, tab), labels, required);
    const features = new Map();
    for (const [word] of asciiLower(label === undefined ? line : line.slice(tab + 1)).matchAll(WORD)) {
      const name = utf8(word);
      features.set(name, (features.get(name) ?? 0) + 1);
    }
    return { features, label };
  };
}

/** For files whose first feature has this number, 0 or 1. */
export function svmlightParser(indexBase, labels, required) {
  return (line) => {
    const words = line.split('#', 1)[0].split(/[ \t]+/).filter(Boolean);
    if (words.length === 0) return undefined;
    let label;
    if (!words[0].includes(':')) label = readLabel(words.shift(), labels, required);
    else if (required) throw new BadLine('no label before the first feature');
    const features = new Map();
    for (const word of words) {
      const [index, value] = parseFeature(word, indexBase);
      if (features.has(index)) throw new BadLine(`index ${index} occurs twice`);
      features.set(index, value);
    }
    return { features, label };
  };
}

/** [index, value], the index from 0 on. */
function parseFeature(word, indexBase) {
  const [, index, value] = FEATURE.exec(word) ?? [];
  // The wire has uint32 and float32: protobufjs would send what is beyond as another number.
  if (!(Number(index) <= MOST_UINT32) || !Number.isFinite(Math.fround(Number(value)))) {
    throw new BadLine(`"${utf8(word).slice(0, 40)}" is no feature: expected index:value, a whole number and a finite one`);
  }
  if (Number(index) < indexBase) throw new BadLine('index 0 in a file whose indices start at 1; if they start at 0, say --index-base 0');
  return [Number(index) - indexBase, Number(value)];
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
