// The points of a model's learning curve: received whole at first, then continued by each response.

import {withStreaks} from './curves.js';

// More than the server keeps, so that points received live stay until they are thinned.
const MAX_POINTS = 1500;

const pointOf = (point) => ({
  revision: Number(point.revision), examples: Number(point.examples), mistakes: Number(point.mistakes), norm: point.weightNorm,
  ceiling: point.marginCeiling, floor: point.marginFloor, error: point.windowError, time: Date.parse(point.time),
});

export class CurvePoints {
  // In ascending order of examples: {revision, examples, mistakes, norm, ceiling, floor, error, time}; absent figures are undefined.
  all = [];
  // The revision up to which the points stored by the server are known.
  knownRevision = 0;

  clear() {
    this.all = [];
    this.knownRevision = 0;
  }

  // Adds the points of a response that the server made at `now`. Its last point is the current state; the server stores those before it.
  add(curve, now) {
    if (curve.length === 0) return;
    const news = curve.map(pointOf);
    const present = news.at(-1);
    present.time = now;
    if (news.length > 1) this.knownRevision = news.at(-2).revision;
    let points = this.all;
    const last = points.at(-1);
    // No example was learned since the last point: only its time changes.
    if (last !== undefined && last.examples === present.examples && last.revision === present.revision) points.pop();
    points = points.concat(news);
    points.sort((a, b) => a.examples - b.examples || a.revision - b.revision || a.time - b.time);
    // A point received live may now be stored by the server, too.
    points = points.filter(
        (p, i) => i === points.length - 1 || p.examples !== points[i + 1].examples || p.revision !== points[i + 1].revision);
    if (points.length > MAX_POINTS) points = points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
    this.all = points;
  }

  // The point's error over the last 1000 examples in percent. With few examples it is noise, and would squeeze the rest of the curve.
  errorOf(point) {
    const isEarly = point.examples < Math.min(100, this.all.at(-1).examples / 10);
    return point.error === undefined || isEarly ? undefined : 100 * point.error;
  }

  // The points to draw over this axis. Over updates a streak has no width, and over time its beginning is not known.
  over(axis, report) {
    return axis === 'examples' ? withStreaks(this.all, report) : this.all;
  }
}

// What is drawn of points: a list of {p, y}; a point of the model without the figure makes a gap.
export const lineOf = (points, figureOf) => points.filter((p) => Number.isFinite(p.time) || figureOf(p) !== undefined).map((p) => ({p, y: figureOf(p)}));
