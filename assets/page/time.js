'use strict';
// The window of time that all plots share, and what moves it: wheel, drag, pinch, keys, fragment.

// In ns since the page's start. `cursor` is where the crosshair stands; null: nowhere.
const time = {start: 0, end: duration, cursor: null};
const kLeastWidth = Math.min(duration, Math.max(duration * 1e-7, 4));
const listeners = [];  // called after each change: draw(what), what = 'window' or 'cursor'
let pending = null;

function onTimeChange(listener) {
  listeners.push(listener);
}

/** Draws once per frame, however many events arrive in it. */
function requestDraw(what) {
  if (pending === null) requestAnimationFrame(drawPending);
  if (pending !== 'window') pending = what;
}

function drawPending() {
  const what = pending;
  pending = null;
  for (const listener of listeners) listener(what);
  setState('zoom', `${fraction(time.start)}-${fraction(time.end)}`);
  writeFragment();
}

const fraction = (ns) => Number((ns / duration).toFixed(7));
const isFitted = () => time.start <= 0 && time.end >= duration;

/** Shows [start, end), moved or cut so that it stays inside the capture. */
function showTime(start, end) {
  const width = Math.min(Math.max(end - start, kLeastWidth), duration);
  const middle = (start + end) / 2;
  const first = end - start < kLeastWidth ? middle - width / 2 : start;
  time.start = Math.min(Math.max(first, 0), duration - width);
  time.end = time.start + width;
  requestDraw('window');
}

const fitTime = () => showTime(0, duration);
const panTime = (share) => {
  const shift = (time.end - time.start) * share;
  showTime(time.start + shift, time.end + shift);
};
function zoomTime(factor, around) {
  const center = around ?? time.cursor ?? (time.start + time.end) / 2;
  const inside = Math.min(Math.max(center, time.start), time.end);
  showTime(inside - (inside - time.start) * factor, inside + (time.end - inside) * factor);
}

function setCursor(ns) {
  if (ns === time.cursor) return;
  time.cursor = ns === null ? null : Math.min(Math.max(ns, 0), duration);
  requestDraw('cursor');
}

// ---- mouse and touch ---------------------------------------------------------------------------

/** `plot.timeAt(event)` says which moment is under a pointer. */
function attachNavigation(plot) {
  const area = plot.element;
  area.addEventListener('wheel', (event) => onWheel(event, plot), {passive: false});
  area.addEventListener('dblclick', () => fitAll());
  const pointers = new Map();  // id -> its last place, in CSS pixels
  let moved = 0;
  area.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    if (event.pointerType !== 'mouse' || event.isPrimary) area.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
    moved = 0;
  });
  area.addEventListener('pointermove', (event) => {
    const before = pointers.get(event.pointerId);
    if (before !== undefined) {
      moved += Math.abs(event.clientX - before.x) + Math.abs(event.clientY - before.y);
      dragPointer(event, plot, pointers);
    }
    setCursor(plot.timeAt(event));
    plot.onHover?.(event);
  });
  const release = (event) => {
    const wasDown = pointers.delete(event.pointerId);
    if (wasDown && moved < 4 && event.type === 'pointerup') plot.onClick?.(event);
  };
  area.addEventListener('pointerup', release);
  area.addEventListener('pointercancel', release);
  area.addEventListener('pointerleave', (event) => {
    if (event.pointerType !== 'mouse' || pointers.size > 0) return;
    setCursor(null);
    plot.onLeave?.();
  });
}

/** Zooms around the mouse. Where nothing is left to zoom out of, the wheel scrolls the page. */
function onWheel(event, plot) {
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  const delta = (isSideways ? event.deltaX || event.deltaY : event.deltaY) *
    (event.deltaMode === 1 ? 30 : 1);
  const isPlain = !isSideways && !event.ctrlKey && !event.altKey;
  if (isPlain && delta > 0 && isFitted()) return;
  event.preventDefault();
  if (plot.onWheel?.(event)) return;
  if (isSideways) return panTime(delta / plot.width());
  zoomTime(Math.exp(Math.min(Math.max(delta, -300), 300) * 0.002), plot.timeAt(event));
}

/** One pointer pans, two zoom around the other one. */
function dragPointer(event, plot, pointers) {
  const before = pointers.get(event.pointerId);
  pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
  if (pointers.size === 1) {
    panTime((before.x - event.clientX) / plot.width());
    plot.onDrag?.(event.clientY - before.y);
    return;
  }
  const other = [...pointers].find(([id]) => id !== event.pointerId)[1].x;
  const distance = Math.abs(event.clientX - other);
  if (distance < 8) return;
  zoomTime(Math.abs(before.x - other) / distance, plot.timeAt({clientX: other}));
}

// ---- keys --------------------------------------------------------------------------------------

const kKeys = {
  w: () => zoomTime(0.75),
  s: () => zoomTime(1 / 0.75),
  a: () => panTime(-0.15),
  d: () => panTime(0.15),
  '+': () => zoomTime(0.75),
  '-': () => zoomTime(1 / 0.75),
  0: () => fitAll(),
  f: () => fitAll(),
  '/': () => document.getElementById('filter').focus(),
  t: () => document.getElementById('theme').click(),
};

function onKey(event) {
  const isTyping = event.target.closest?.('input, select, textarea');
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = kKeys[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
}

/** Arrow keys of a plot that has the focus move the crosshair. */
function moveCursor(event) {
  const steps = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (steps === undefined) return false;
  const width = time.end - time.start;
  const from = time.cursor ?? time.start + width / 2;
  setCursor(from + steps * width * (event.shiftKey ? 0.001 : 0.01));
  if (time.cursor < time.start || time.cursor > time.end) panTime(steps * 0.15);
  event.preventDefault();
  return true;
}

// ---- the address: #zoom=0.2-0.4&cursor=0.3&sort=bytes&order=asc&filter=mask&theme=light --------

let fragmentTimer = null;
const fragmentParts = [];  // functions that add what they show: (URLSearchParams) => void

function readFragment() {
  return new URLSearchParams(location.hash.slice(1));
}

function applyTimeFragment(parameters) {
  const [start, end] = (parameters.get('zoom') ?? '').split('-').map(Number);
  if (start >= 0 && end > start) showTime(start * duration, end * duration);
  else showTime(0, duration);
  const cursor = parameters.has('cursor') ? Number(parameters.get('cursor')) : NaN;
  time.cursor = cursor >= 0 && cursor <= 1 ? cursor * duration : null;
}

/** The address always leads back to what is shown. */
function writeFragment() {
  clearTimeout(fragmentTimer);
  fragmentTimer = setTimeout(() => {
    const parameters = new URLSearchParams();
    if (!isFitted()) parameters.set('zoom', `${fraction(time.start)}-${fraction(time.end)}`);
    for (const add of fragmentParts) add(parameters);
    const text = parameters.toString();
    try {
      history.replaceState(null, '', text ? '#' + text : location.pathname + location.search);
    } catch {
      // Some browsers allow no addresses of local files, or few a second.
    }
  }, 250);
}
