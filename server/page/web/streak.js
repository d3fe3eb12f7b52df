// What is known of a model between two points of its curves, and while it answers right: weights and counts stand still then. A
// straight line between the points would say something else.

// Examples that the error over the latest is of.
const WINDOW = 1000;

// The example since which there has been no mistake among the latest: undefined if there still may be, or the streak is shorter.
export function faultlessSince(report) {
  const streak = Number(report.streak);
  return streak < WINDOW ? undefined : Number(report.examples) - streak + WINDOW;
}

// How the model that stood as `point` did, stands after more examples: what has to be measured is not known.
const standing = (point, examples, error) => ({...point, examples, error, ceiling: undefined, floor: undefined, time: NaN});

// From one point to the next, if no other update and no other mistake lies between them than the next one's own.
function between(point, next) {
  const updates = next.revision - point.revision;
  if (updates > 1 || next.mistakes - point.mistakes > updates) return [];
  const end = next.examples - updates;
  const fill = [];
  if (point.examples + WINDOW < end) fill.push(standing(point, point.examples + WINDOW, 0));
  if (point.examples < end && end < next.examples) fill.push(standing(point, end, fill.length > 0 ? 0 : undefined));
  return fill;
}

// The points, and between them those that follow. The last of them is the present, which the report is of.
export function withStreaks(points, report) {
  const present = points.at(-1);
  const known = points.slice();
  // The last update, where its own point is not among those that are held.
  const since = present.examples - Number(report.streak);
  const first = points.findIndex((point) => point.revision === present.revision);
  if (since < points[first].examples) known.splice(first, 0, standing(present, since, undefined));
  return known.flatMap((point, i) => (i + 1 < known.length ? [point, ...between(point, known[i + 1])] : [point]));
}
