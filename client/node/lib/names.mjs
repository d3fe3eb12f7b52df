/** The full name of a model; of an alias, "aliases/prod", its own. */
export function nameOf(model) {
  if (typeof model !== 'string') throw new RangeError(`the model is ${String(model)}; expected its name`);
  return /^(models|aliases)\//.test(model) ? model : `models/${model}`;
}
