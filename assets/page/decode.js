'use strict';
// Reads the packed numbers of the page (profiler/charts/html.h) into typed arrays.

const page = JSON.parse(document.getElementById('data').textContent);
const kReserved = page.categories.length;  // reserved bytes come after those of the categories
const kNumSeries = kReserved + 1;

function decodeBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

class NumberReader {
  constructor(base64) {
    this.bytes = decodeBase64(base64);
    this.at = 0;
  }

  /** 7 bits a byte. Multiplies, because bit operations of JavaScript end at 32 bits. */
  next() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (!(byte & 128)) return value;
    }
  }

  nextSigned() {
    const value = this.next();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

/** Moments as columns: time in ns since the page's start, bytes of each series, their total. */
function decodeMoments(packed) {
  const reader = new NumberReader(packed.packed);
  const count = packed.count;
  const time = new Float64Array(count);
  const total = new Float64Array(count);
  const series = Array.from({length: kNumSeries}, () => new Float64Array(count));
  const now = new Float64Array(kNumSeries);
  let timeNow = 0;
  for (let i = 0; i < count; ++i) {
    time[i] = timeNow += reader.next();
    const mask = reader.next();
    for (let s = 0; s < kNumSeries; ++s) {
      if (mask >> s & 1) now[s] += reader.nextSigned() * packed.unit_bytes;
      series[s][i] = now[s];
      if (s !== kReserved) total[i] += now[s];
    }
  }
  return {count, time, total, series, isExact: packed.is_exact};
}

/** Blocks as columns, in the order of allocation; block i is live at the moments [first, last). */
function decodeBlocks(packed) {
  const reader = new NumberReader(packed.packed);
  const count = packed.count;
  const blocks = {
    count,
    first: new Uint32Array(count),
    last: new Uint32Array(count),
    bytes: new Float64Array(count),
    category: new Uint8Array(count),
    label: new Uint32Array(count),
    labels: packed.labels.map(([name, module]) => [visible(name), visible(module)]),
    hiddenCount: packed.hidden_count,
  };
  let first = 0;
  for (let i = 0; i < count; ++i) {
    blocks.first[i] = first += reader.next();
    blocks.last[i] = first + reader.next();
    blocks.bytes[i] = reader.next() * packed.unit_bytes;
    blocks.category[i] = reader.next();
    blocks.label[i] = reader.next();
  }
  return blocks;
}

function decodeTrace(packed, index) {
  const trace = {...packed, index, letter: 'AB'[index], moments: decodeMoments(packed.moments),
    blocks: decodeBlocks(packed.blocks)};
  trace.name = visible(packed.name);
  trace.maxTotal = trace.moments.total.reduce((a, b) => Math.max(a, b), 0);
  trace.maxReserved = trace.moments.series[kReserved].reduce((a, b) => Math.max(a, b), 0);
  trace.hasReserved = trace.moments.series[kReserved].some((b, i) => b !== trace.moments.total[i]);
  return trace;
}

const traces = page.traces.map(decodeTrace);
const duration = Math.max(page.end_ns - page.start_ns, 1);
