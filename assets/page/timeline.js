'use strict';
// The memory timeline: categories stacked over time, reserved bytes as a line, phases; the difference
// of two traces below.

const timelinePlots = [];

const mostBytes = Math.max(...traces.map((trace) => Math.max(trace.maxTotal, trace.maxReserved)));

/** Categories that any trace has, from the bottom of a stack to its top. */
const usedCategories = page.stack_order.filter((category) =>
  traces.some((trace) => trace.moments.series[category].some((bytes) => bytes > 0)));

/** Adds a step line over columns to a path, from the left or, for the way back, from the right. */
function addSteps(path, plot, heights, isBack) {
  const count = heights.length;
  let last = NaN;
  for (let i = 0; i < count; ++i) {
    const c = isBack ? count - 1 - i : i;
    const before = plot.left + c + (isBack ? 1 : 0);
    if (heights[c] === last) continue;
    if (i > 0) path.lineTo(before, last);
    path.lineTo(before, heights[c]);
    last = heights[c];
  }
  path.lineTo(isBack ? plot.left : plot.left + count, last);
}

function areaPath(plot, below, above) {
  const path = new Path2D();
  path.moveTo(plot.left, below[0]);
  addSteps(path, plot, above, false);
  addSteps(path, plot, below, true);
  path.closePath();
  return path;
}

function drawPhases(plot) {
  const {context, trace, em, scale} = plot;
  const height = Math.round(kPhaseStripEm * em);
  plot.setFont(400, 0.82);
  context.textBaseline = 'middle';
  context.textAlign = 'center';
  for (const [i, phase] of trace.phases.entries()) {
    const from = Math.max(plot.x(phase.start_ns - page.start_ns), plot.left);
    const to = Math.min(plot.x(phase.end_ns - page.start_ns), plot.right);
    if (to <= from) continue;
    context.fillStyle = withAlpha(theme().text, i % 2 ? 0.09 : 0.14);
    context.fillRect(from, plot.top, to - from, height);
    context.fillStyle = withAlpha(theme().text, i % 2 ? 0 : 0.03);
    context.fillRect(from, plot.top, to - from, plot.rows);
    context.fillStyle = withAlpha(theme().text, 0.25);
    context.fillRect(Math.round(from), plot.top, Math.max(1, Math.round(scale)), plot.rows);
    const room = to - from - em;
    const label = [phase.text, phase.kind].find((text) => context.measureText(text).width <= room);
    context.fillStyle = theme().text;
    if (label) context.fillText(label, (from + to) / 2, plot.top + height / 2);
  }
}

function drawStack(plot, columns, y) {
  const {context, trace} = plot;
  const {moments} = trace;
  const below = new Float64Array(columns.length).fill(y(0));
  const sums = new Float64Array(columns.length);
  for (const category of usedCategories) {
    const bytes = moments.series[category];
    const above = new Float64Array(columns.length);
    let isEmpty = true;
    for (let c = 0; c < columns.length; ++c) {
      const value = columns[c] < 0 ? 0 : bytes[columns[c]];
      if (value > 0) isEmpty = false;
      sums[c] += value;
      above[c] = y(sums[c]);
    }
    if (isEmpty) continue;
    const path = areaPath(plot, below, above);
    context.fillStyle = theme().categories[category];
    context.fill(path);
    context.fillStyle = plot.patterns[category];
    context.fill(path);
    below.set(above);
  }
}

function strokeTotals(plot, columns, y, bytes, dashed) {
  const {context} = plot;
  const path = new Path2D();
  let isOpen = false;
  for (let c = 0; c < columns.length; ++c) {
    if (columns[c] < 0) {
      isOpen = false;
      continue;
    }
    const at = y(bytes[columns[c]]);
    if (isOpen) path.lineTo(plot.left + c, at);
    else path.moveTo(plot.left + c, at);
    path.lineTo(plot.left + c + 1, at);
    isOpen = true;
  }
  context.strokeStyle = withAlpha(theme().text, dashed ? 0.8 : 0.55);
  context.lineWidth = Math.max(1, plot.scale);
  context.setLineDash(dashed ? [5 * plot.scale, 3 * plot.scale] : []);
  context.stroke(path);
  context.setLineDash([]);
}

function drawPeak(plot, y) {
  const {context, trace, em, scale} = plot;
  if (!trace.peak) return;
  const x = plot.x(trace.peak.time_ns - page.start_ns);
  if (x < plot.left || x > plot.right) return;
  const at = y(trace.peak.bytes);
  plot.setFont(500, 0.86);
  const room = Math.max(x - plot.left, plot.right - x) - 2 * em;
  const texts = [trace.peak.text, trace.summary];
  const text = texts.find((each) => context.measureText(each).width <= room) ?? trace.summary;
  const width = context.measureText(text).width + em;
  const isLeft = x + width + em > plot.right;
  const left = Math.max(plot.left, isLeft ? x - width - 0.7 * em : x + 0.7 * em);
  context.fillStyle = withAlpha(theme().raised, 0.92);
  context.beginPath();
  context.roundRect(left, at - 0.8 * em, width, 1.6 * em, 0.3 * em);
  context.fill();
  context.fillStyle = theme().text;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillText(text, left + em / 2, at);
  context.beginPath();
  context.arc(x, at, 3.5 * scale, 0, 7);
  context.fill();
  context.strokeStyle = theme().plot;
  context.lineWidth = 1.5 * scale;
  context.stroke();
}

/** The rows below the strip that names the phases. */
function roomBelowPhases(plot) {
  return plot.rows - (plot.trace.phases.length > 0 ? Math.round(kPhaseStripEm * plot.em) : 0);
}

function paintTimeline(plot) {
  const {context, trace} = plot;
  if (!plot.patterns || plot.patternTheme !== themeName || plot.patternScale !== plot.scale) {
    plot.patterns = page.categories.map((_, i) => hatchPattern(context, i, plot.scale));
    plot.patternTheme = themeName;
    plot.patternScale = plot.scale;
  }
  const room = roomBelowPhases(plot);
  const end = axisEnd(mostBytes, Math.floor(room / (2.6 * plot.em)));
  const y = (bytes) => plot.bottom - bytes / end * room;
  const columns = highestMoments(trace, plot.columns);
  plot.columnMoments = columns;
  context.save();
  context.beginPath();
  context.rect(plot.left, plot.top, plot.columns, plot.rows);
  context.clip();
  drawPhases(plot);
  drawStack(plot, columns, y);
  strokeTotals(plot, columns, y, trace.moments.total, false);
  if (trace.hasReserved) strokeTotals(plot, columns, y, trace.moments.series[kReserved], true);
  drawPeak(plot, y);
  context.restore();
  plot.drawByteAxis(0, end, y);
}

// ---- the difference ----------------------------------------------------------------------------

/** Allocated bytes of B minus those of A for each column; 0 where one of the captures has ended. */
function differences(count) {
  const [a, b] = traces.map((trace) => highestMoments(trace, count));
  const [totalA, totalB] = traces.map((trace) => trace.moments.total);
  return Float64Array.from(a, (momentA, c) =>
    momentA < 0 || b[c] < 0 ? 0 : totalB[b[c]] - totalA[momentA]);
}

function paintDifference(plot) {
  const {context} = plot;
  const values = differences(plot.columns);
  const least = values.reduce((a, b) => Math.min(a, b), 0);
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  if (least === 0 && most === 0) {
    plot.drawNote('No difference here.');
    return;
  }
  const margin = Math.max((most - least) * 0.12, 1);
  const low = least - margin;
  const high = most + margin;
  const y = (bytes) => plot.bottom - (bytes - low) / (high - low) * plot.rows;
  const zero = new Float64Array(values.length).fill(y(0));
  const fill = (part, color) => {
    context.fillStyle = color;
    context.fill(areaPath(plot, zero, values.map((value) => y(part(value, 0)))));
  };
  fill(Math.min, theme().good);
  fill(Math.max, theme().bad);
  plot.drawByteAxis(low, high, y, {isSigned: true});
}

// ---- the readout -------------------------------------------------------------------------------

/** The moment that the plot's column under the crosshair shows; else the one at the crosshair. */
function momentUnderCursor(plot) {
  const isSeen = time.cursor >= time.start && time.cursor <= time.end && plot.columnMoments;
  return isSeen ? plot.columnMoments[plot.columnAt(time.cursor)] : momentAt(plot.trace, time.cursor);
}

function makeCell(tag, text, className) {
  const cell = document.createElement(tag);
  cell.textContent = text;
  if (className) cell.className = className;
  return cell;
}

function makeRow(cells, className) {
  const row = document.createElement('tr');
  if (className) row.className = className;
  row.append(...cells);
  return row;
}

const bytesOrNone = (bytes) => (bytes === null ? kNoValue : formatBytes(bytes));

/** One row per category: bytes of each trace, and the share or the difference. */
function readoutRow(label, values, totals, className) {
  const cells = [label, ...values.map((bytes) => makeCell('td', bytesOrNone(bytes)))];
  if (values.length === 1) {
    const share = totals[0] > 0 && values[0] !== null ? formatPercent(values[0] / totals[0]) : '';
    cells.push(makeCell('td', className ? '' : share, 'dim'));
  } else {
    const isKnown = values.every((bytes) => bytes !== null);
    const difference = isKnown ? values[1] - values[0] : 0;
    cells.push(makeCell('td', isKnown ? formatSignedBytes(difference) : kNoValue,
      difference < 0 ? 'good' : difference > 0 ? 'bad' : 'dim'));
  }
  return makeRow(cells, className);
}

function readoutTitle(moments) {
  const parts = traces.map((trace, i) => {
    const name = traces.length > 1 ? `${trace.letter} ` : '';
    return `${name}${formatTime(ownTime(trace, time.cursor))}`;
  });
  const phase = phaseText(traces[0], time.cursor) || phaseText(traces.at(-1), time.cursor);
  return [parts.join(', '), phase].filter(Boolean).join(' · ');
}

function fillReadout() {
  const area = document.getElementById('timeline-readout');
  if (time.cursor === null) {
    area.replaceChildren(makeCell('p', 'Point at the timeline to read it.', 'dim'));
    return;
  }
  const moments = timelinePlots.filter((plot) => plot.trace).map(momentUnderCursor);
  const valuesOf = (bytes) => traces.map((trace, i) => moments[i] < 0 ? null : bytes(trace)[moments[i]]);
  const totals = valuesOf((trace) => trace.moments.total);
  const table = document.createElement('table');
  if (traces.length > 1) {
    table.append(makeRow(['', 'A', 'B', 'B - A'].map((text) => makeCell('th', text))));
  }
  for (const category of [...usedCategories].reverse()) {
    const values = valuesOf((trace) => trace.moments.series[category]);
    if (!values.some((bytes) => bytes > 0)) continue;
    const label = document.createElement('td');
    label.append(makeSwatch(category), page.categories[category].label);
    table.append(readoutRow(label, values, totals));
  }
  table.append(readoutRow(makeCell('td', 'Allocated'), totals, totals, 'total'));
  if (traces.some((trace) => trace.hasReserved)) {
    const reserved = valuesOf((trace) => trace.moments.series[kReserved]);
    table.append(readoutRow(makeCell('td', 'Reserved (dashed)'), reserved, totals, 'reserved'));
  }
  area.replaceChildren(makeCell('p', readoutTitle(moments), 'when'), table);
}

// ---- the section -------------------------------------------------------------------------------

/** "A original  peak 24.5 GiB" above a plot. */
function makePlotTitle(trace, detail) {
  const title = document.createElement('h3');
  if (traces.length > 1) {
    title.append(makeCell('span', trace.letter, `badge badge-${trace.letter.toLowerCase()}`));
  }
  title.append(makeCell('span', trace.name, 'name'), makeCell('span', detail, 'dim'));
  return title;
}

function buildLegend() {
  const legend = document.getElementById('legend');
  for (const category of usedCategories) {
    const entry = document.createElement('li');
    entry.append(makeSwatch(category), page.categories[category].label);
    legend.append(entry);
  }
  if (traces.some((trace) => trace.hasReserved)) {
    const entry = document.createElement('li');
    entry.append(makeCell('span', '', 'dashes'), 'Reserved by the allocator');
    legend.append(entry);
  }
}

function addTimelinePlot(options) {
  const parent = document.getElementById('timeline-plots');
  timelinePlots.push(new Plot({parent, ...options}));
}

function buildTimeline() {
  buildLegend();
  const parent = document.getElementById('timeline-plots');
  const hasDifference = traces.length > 1;
  for (const trace of traces) {
    parent.append(makePlotTitle(trace, trace.summary));
    addTimelinePlot({className: 'timeline', trace, hasTimeAxis: !hasDifference, paint: paintTimeline,
      label: `Memory over time of ${trace.name}, ${trace.summary}. Arrow keys move the crosshair.`});
  }
  if (hasDifference) {
    const title = document.createElement('h3');
    title.append(makeCell('span', 'B minus A', 'name'), makeCell('span', 'allocated', 'dim'));
    parent.append(title);
    addTimelinePlot({className: 'difference', trace: null, hasTimeAxis: true, paint: paintDifference,
      label: 'Allocated memory of B minus that of A over time.'});
  }
  onTimeChange((what) => {
    for (const plot of timelinePlots) what === 'window' ? plot.draw() : plot.drawCursor();
    fillReadout();
  });
}
