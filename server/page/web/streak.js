// The state of a model between two points of its curves, while it makes no mistake: weights and counts do not change. A straight line
// between the points would be wrong.

// The window of the latest error, in examples.
const WINDOW = 1000;

// The example after which the window has no mistake; undefined if it may have one, or the streak is shorter.
export function faultlessSince(report) {
  const streak = Number(report.streak);
  return streak < WINDOW ? undefined : Number(report.examples) - streak + WINDOW;
}

// The point of a model that saw more examples without a mistake: what would have to be measured is not known.
const unchanged = (point, examples, error) => ({...point, examples, error, ceiling: undefined, floor: undefined, time: NaN});

// The points between two points, if the second one's is the only update and mistake between them.
function between(point, next) {
  const updates = next.revision - point.revision;
  if (updates > 1 || next.mistakes - point.mistakes > updates) return [];
  const end = next.examples - updates;
  const fill = [];
  if (point.examples + WINDOW < end) fill.push(unchanged(point, point.examples + WINDOW, 0));
  if (point.examples < end && end < next.examples) fill.push(unchanged(point, end, fill.length > 0 ? 0 : undefined));
  return fill;
}

// All points, with those in between. The last one is the current state, which the report describes.
export function withStreaks(points, report) {
  const present = points.at(-1);
  const known = points.slice();
  // The last update, if its own point is not stored.
  const since = present.examples - Number(report.streak);
  const first = points.findIndex((point) => point.revision === present.revision);
  if (since < points[first].examples) known.splice(first, 0, unchanged(present, since, undefined));
  return known.flatMap((point, i) => (i + 1 < known.length ? [point, ...between(point, known[i + 1])] : [point]));
}
