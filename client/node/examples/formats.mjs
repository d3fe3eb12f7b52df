// Examples: read from files, with their labels. The formats are two of perceptronctl's:
//
// text:      label<TAB>text; the server splits the text into words.
// svmlight:  label index:value index:value ... # comment
//
// If no label is required, a line of text without a tab, or with an unknown label before its first tab, is all text,
// and a line of svmlight may start with its first feature.
//
// A row is {text, features: Map of indices to values, empty beside a text, label: the result of Labels.read(), or undefined}.

import { BadLine } from '../lib/rows.mjs';

const FEATURE = /^(\d+):([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)$/;
const MOST_UINT32 = 2 ** 32 - 1;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function utf8(bytes) {
  try {
    return decoder.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new BadLine('not valid UTF-8');
  }
}

/** Throws BadLine if a label is required and the text is not one of the model. */
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
    if (required && tab < 0) throw new BadLine('there is no tab: expected a label, a tab and a text');
    const label = tab < 0 ? undefined : readLabel(line.slice(0, tab), labels, required);
    return { features: new Map(), text: utf8(label === undefined ? line : line.slice(tab + 1)), label };
  };
}

/** For files whose first index is this, 0 or 1. */
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

/** Returns [index, value] with indices from 0. */
function parseFeature(word, indexBase) {
  const [, index, value] = FEATURE.exec(word) ?? [];
  // The message has uint32 and float32; protobufjs would send a different number for larger ones.
  if (!(Number(index) <= MOST_UINT32) || !Number.isFinite(Math.fround(Number(value)))) {
    throw new BadLine(`"${utf8(word).slice(0, 40)}" is not a feature: expected index:value, an integer and a finite number`);
  }
  if (Number(index) < indexBase) throw new BadLine('index 0 with --index-base 1; if indices start at 0, give --index-base 0');
  return [Number(index) - indexBase, Number(value)];
}

/** Yields the lines of a byte stream, a character for each byte, without their ends; '\r' and other separators within a line stay. */
async function* linesOf(input) {
  let rest = '';
  for await (const chunk of input.setEncoding('latin1')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    yield* lines;
  }
  if (rest) yield rest;
}

/** Yields the rows of a readable stream. Throws BadLine at the first malformed line. */
export async function* readRows(input, name, parse) {
  let number = 0;
  for await (const line of linesOf(input)) {
    number += 1;
    const text = line.replace(/\r+$/, '');
    if (!text) continue;
    try {
      const row = parse(text);
      if (row) yield { ...row, line: number };
    } catch (error) {
      throw error instanceof BadLine ? new BadLine(`${name}:${number}: ${error.message}`) : error;
    }
  }
}
