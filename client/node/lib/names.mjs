/** The full name of a model; of an alias, "aliases/prod", its own. */
export const nameOf = (model) => (/^(models|aliases)\//.test(model) ? model : `models/${model}`);
