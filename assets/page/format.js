'use strict';
// How numbers, times and names read: the rules of profiler/trace/units.cpp and profiler/view/axis.cpp.

const kByteUnits = [['B', 1], ['KiB', 2 ** 10], ['MiB', 2 ** 20], ['GiB', 2 ** 30], ['TiB', 2 ** 40],
  ['PiB', 2 ** 50]];
const kTimeUnits = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]];
const kNoValue = '–';

// Control characters, marks that turn the direction of writing, and what nobody sees: a name must not hide behind them. The same set
// as in profiler/trace/printable.cpp.
const kInvisible = new RegExp('[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f' +
  '\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\u{e0000}-\\u{e007f}]', 'gu');

function visible(text) {
  return text.replace(kInvisible, (c) => {
    const code = c.codePointAt(0).toString(16);
    return code.length > 4 ? '\\U' + code.padStart(8, '0') : '\\u' + code.padStart(4, '0');
  });
}

/** Three digits in the largest unit of which there is at least one. */
function formatInUnits(amount, units) {
  const magnitude = Math.abs(amount);
  let best = 0;
  while (best + 1 < units.length &&
         Math.round(magnitude / units[best][1]) >= units[best + 1][1] / units[best][1]) {
    ++best;
  }
  const [name, size] = units[best];
  const value = magnitude / size;
  const decimals = best === 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${amount < 0 ? '-' : ''}${value.toFixed(decimals)} ${name}`;
}

const formatBytes = (bytes) => formatInUnits(bytes, kByteUnits);
const formatSignedBytes = (bytes) =>
  bytes === 0 ? kNoValue : (bytes > 0 ? '+' : '') + formatBytes(bytes);
const formatCount = (count) => String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',');
const formatExactBytes = (bytes) => formatCount(bytes) + ' B';
const formatPercent = (ratio) => (Math.round(ratio * 1000) / 10).toFixed(1) + ' %';

/** A moment or a duration. A file without a clock counts events. */
function formatTime(ns) {
  return page.has_clock ? formatInUnits(ns, kTimeUnits) : `event ${formatCount(ns)}`;
}
function formatDuration(ns) {
  return page.has_clock ? formatInUnits(ns, kTimeUnits) : `${formatCount(ns)} events`;
}

// ---- axes --------------------------------------------------------------------------------------

function nextStep(step, isBinary) {
  if (isBinary) return step * 2;
  const decade = 10 ** Math.floor(Math.log10(step) + 1e-9);
  const digit = Math.round(step / decade);
  return (digit < 2 ? 2 : digit < 5 ? 5 : 10) * decade;
}

/** The smallest nice step with at most `maxCount` ticks in [min, max]. */
function findStep(min, max, maxCount, isBinary) {
  const width = Math.max((max - min) / maxCount, 1e-9);
  let step = isBinary ? 2 ** Math.floor(Math.log2(width)) : 10 ** Math.floor(Math.log10(width));
  step = Math.max(step, 1);
  const count = () => Math.floor(max / step) - Math.ceil(min / step) + 1;
  while (count() > maxCount) step = nextStep(step, isBinary);
  return step;
}

/** The unit of all labels of an axis: that of the largest value, unless the step is much finer. */
function chooseUnit(units, largest, step, isBinary) {
  let i = units.length - 1;
  while (i > 0 && (largest < units[i][1] || (isBinary && step < 0.25 * units[i][1]))) --i;
  return units[i];
}

function decimalsFor(step) {
  let decimals = 0;
  while (decimals < 9 && Math.abs(step - Math.round(step)) > 1e-6 * step) {
    step *= 10;
    ++decimals;
  }
  return decimals;
}

function groupDigits(text) {
  const [whole, fraction] = text.split('.');
  const grouped = whole.replace('-', '').length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, ',') : whole;
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

function makeTicks(min, max, maxCount, units) {
  if (!(max > min) || !isFinite(max - min)) return [];
  const isBinary = units === kByteUnits;
  const step = findStep(min, max, Math.max(maxCount, 2), isBinary);
  const [name, size] = chooseUnit(units, Math.max(Math.abs(min), Math.abs(max)), step, isBinary);
  const decimals = decimalsFor(step / size);
  const ticks = [];
  for (let i = Math.ceil(min / step); i * step <= max && ticks.length < 100; ++i) {
    const value = i * step;
    const label = value === 0 ? '0' : `${groupDigits((value / size).toFixed(decimals))} ${name}`;
    ticks.push({value, label: label.trim()});
  }
  return ticks;
}

const byteTicks = (min, max, maxCount) => makeTicks(min, max, maxCount, kByteUnits);
const timeTicks = (min, max, maxCount) =>
  makeTicks(min, max, maxCount, page.has_clock ? kTimeUnits : [['', 1]]);

/** The end of an axis from 0 that shows `most` with some room above it: on a tick if one is near. */
function axisEnd(most, maxCount) {
  const end = most * 1.12;
  if (!(end > 0)) return 1;
  const step = findStep(0, end, Math.max(maxCount, 2), true);
  const nextTick = Math.ceil(end / step) * step;
  return nextTick - end <= 0.4 * step ? nextTick : end;
}
