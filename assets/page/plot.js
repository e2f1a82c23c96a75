'use strict';
// A plot over time: a canvas with axes, a layer above it for what follows the mouse, a crosshair.

const kPhaseStripEm = 1.5;

/** The root's font size: everything on a canvas is measured in it, as the rest of the page is. */
const emPixels = () => parseFloat(getComputedStyle(root).fontSize);

class Plot {
  /** `paint(plot)` draws the inside; the plot has drawn its axes before. */
  constructor({parent, className, label, trace, hasTimeAxis, paint}) {
    Object.assign(this, {trace, hasTimeAxis, paint});
    this.element = document.createElement('div');
    this.element.className = `plot ${className}`;
    this.element.tabIndex = 0;
    this.element.setAttribute('role', 'application');
    this.element.setAttribute('aria-label', label);
    this.canvas = document.createElement('canvas');
    this.overlay = document.createElement('canvas');
    this.overlay.className = 'overlay';
    this.element.append(this.canvas, this.overlay);
    parent.append(this.element);
    this.context = this.canvas.getContext('2d');
    attachNavigation(this);
    this.element.addEventListener('keydown', (event) => this.onKeyDown(event));
    new ResizeObserver(() => requestDraw('window')).observe(this.element);
  }

  onKeyDown(event) {
    moveCursor(event);
  }

  /** Fits the canvases to the element and finds the place of the inside, in device pixels. */
  layOut() {
    const scale = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(this.element.clientWidth * scale));
    const height = Math.max(1, Math.round(this.element.clientHeight * scale));
    for (const canvas of [this.canvas, this.overlay]) {
      if (canvas.width !== width || canvas.height !== height) {
        canvas.width = width;
        canvas.height = height;
      }
    }
    const em = emPixels() * scale;
    this.scale = scale;
    this.em = em;
    this.left = Math.round(Math.min(5.4 * em, width * 0.2));
    this.right = width - Math.round(0.5 * em);
    this.top = Math.round(0.4 * em);
    this.bottom = height - Math.round((this.hasTimeAxis ? 1.7 : 0.5) * em);
    this.columns = Math.max(1, this.right - this.left);
    this.rows = Math.max(1, this.bottom - this.top);
  }

  width() {
    return this.columns / this.scale;
  }
  x(ns) {
    return this.left + (ns - time.start) / (time.end - time.start) * this.columns;
  }
  timeAtPixel(x) {
    return time.start + (x - this.left) / this.columns * (time.end - time.start);
  }
  timeAt(event) {
    const box = this.element.getBoundingClientRect();
    const ns = this.timeAtPixel((event.clientX - box.left) * this.scale);
    return Math.min(Math.max(ns, time.start), time.end);
  }
  /** The column of pixels under a moment of the window. */
  columnAt(ns) {
    const share = (ns - time.start) / (time.end - time.start);
    return Math.min(Math.max(Math.floor(share * this.columns), 0), this.columns - 1);
  }

  setFont(weight = 400, ems = 0.86) {
    this.context.font = `${weight} ${this.em * ems}px ${kFontFamily}`;
  }

  draw() {
    this.layOut();
    const {context} = this;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.fillStyle = theme().plot;
    context.fillRect(this.left, this.top, this.columns, this.rows);
    this.paint(this);
    this.strokeFrame();
    if (this.hasTimeAxis) this.drawTimeAxis();
    this.drawCursor();
  }

  strokeFrame() {
    const {context} = this;
    context.strokeStyle = theme().border;
    context.lineWidth = Math.max(1, Math.round(this.scale));
    context.strokeRect(this.left - 0.5, this.top - 0.5, this.columns + 1, this.rows + 1);
  }

  drawTimeAxis() {
    const {context} = this;
    this.setFont();
    context.fillStyle = theme().dim_text;
    context.textBaseline = 'top';
    context.textAlign = 'center';
    const count = Math.max(2, Math.floor(this.columns / (7 * this.em)));
    const offset = page.start_ns;
    for (const tick of timeTicks(time.start + offset, time.end + offset, count)) {
      const x = Math.round(this.x(tick.value - offset));
      const half = context.measureText(tick.label).width / 2;
      context.fillRect(x, this.bottom, Math.max(1, this.scale), 0.3 * this.em);
      const inside = Math.min(Math.max(x, this.left + half), this.right - half);
      context.fillText(tick.label, inside, this.bottom + 0.45 * this.em);
    }
  }

  /** Lines and labels of bytes from `low` at the bottom to `high`, of the given rows. */
  drawByteAxis(low, high, y, {isSigned = false} = {}) {
    const {context} = this;
    const count = Math.max(2, Math.floor(Math.abs(y(low) - y(high)) / (2.6 * this.em)));
    this.setFont();
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const tick of byteTicks(low, high, count)) {
      const at = Math.round(y(tick.value)) + 0.5;
      context.fillStyle = withAlpha(theme().text, tick.value === 0 && isSigned ? 0.5 : 0.1);
      context.fillRect(this.left, at - 0.5, this.columns, Math.max(1, Math.round(this.scale)));
      context.fillStyle = theme().dim_text;
      const label = isSigned && tick.value > 0 ? '+' + tick.label : tick.label;
      const inside = Math.min(Math.max(at, this.top + 0.4 * this.em), this.bottom - 0.3 * this.em);
      context.fillText(label, this.left - 0.45 * this.em, inside);
    }
  }

  /** A sentence in place of a picture. */
  drawNote(text) {
    const {context} = this;
    this.setFont(400, 1);
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillStyle = theme().dim_text;
    context.fillText(text, (this.left + this.right) / 2, (this.top + this.bottom) / 2);
  }

  /** The crosshair, and what a subclass shows above the picture. */
  drawCursor() {
    const context = this.overlay.getContext('2d');
    context.clearRect(0, 0, this.overlay.width, this.overlay.height);
    this.paintOverlay?.(context);
    if (time.cursor === null || time.cursor < time.start || time.cursor > time.end) return;
    const x = Math.round(this.x(time.cursor));
    context.fillStyle = withAlpha(theme().text, 0.75);
    context.fillRect(x, this.top, Math.max(1, Math.round(this.scale)), this.rows);
  }
}

const kFontFamily = "Roboto, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";

/** The text, shortened in the middle to fit. */
function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let fits = 0;
  let tooMany = text.length;
  const shorten = (count) =>
    text.slice(0, Math.ceil(count / 2)) + '…' + text.slice(text.length - Math.floor(count / 2));
  while (tooMany - fits > 1) {
    const middle = (fits + tooMany) >> 1;
    if (context.measureText(shorten(middle)).width <= width) fits = middle;
    else tooMany = middle;
  }
  return fits < 2 ? '' : shorten(fits);
}

/** The last index whose value is at most `value`; -1 if there is none. */
function lastAtMost(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * For each column of the window the moment of its highest total: that is what the column shows, so
 * that no peak is lost between pixels. -1 outside of the capture.
 */
function highestMoments(trace, count) {
  const {moments} = trace;
  const columns = new Int32Array(count).fill(-1);
  const width = (time.end - time.start) / count;
  const first = trace.start_ns - page.start_ns;
  const last = trace.end_ns - page.start_ns;
  let next = lastAtMost(moments.time, time.start) + 1;
  for (let c = 0; c < count; ++c) {
    const start = time.start + c * width;
    const end = c + 1 === count ? time.end : start + width;
    let best = next - 1;
    while (next < moments.count && moments.time[next] < end) {
      if (best < 0 || moments.total[next] > moments.total[best]) best = next;
      ++next;
    }
    if (end > first && start < last) columns[c] = best;
  }
  return columns;
}

/** The moment that a plot shows at `ns`. */
function momentAt(trace, ns) {
  const inside = ns >= trace.start_ns - page.start_ns && ns <= trace.end_ns - page.start_ns;
  return inside ? lastAtMost(trace.moments.time, ns) : -1;
}

/** A moment of the page on the trace's own clock. */
function ownTime(trace, ns) {
  const shared = ns + page.start_ns;
  const points = trace.time_map;
  if (points.length === 0) return shared;
  const after = points.findIndex(([at]) => at > shared);
  if (after === 0) return points[0][1] + shared - points[0][0];
  const [shared0, own0] = points[(after < 0 ? points.length : after) - 1];
  if (after < 0) return own0 + shared - shared0;
  const [shared1, own1] = points[after];
  return own0 + (shared - shared0) / (shared1 - shared0) * (own1 - own0);
}

/** "backward of step 2"; empty outside of phases. */
function phaseText(trace, ns) {
  const at = ns + page.start_ns;
  const isInside = (band) => at >= band.start_ns && at < band.end_ns;
  const phase = trace.phases.find(isInside);
  if (!phase) return '';
  const step = trace.steps.find(isInside);
  return step ? `${phase.kind} of ${step.text}` : phase.kind;
}
