'use strict';
// The blocks: each block of memory as a shape over time, stacked in the order of allocation. When a
// block is freed, those above it sink, so the stack is as high as the memory that is allocated.
//
// The picture is made pixel by pixel: each column asks for the blocks that are live at its moment. So
// its cost depends on the pixels and the live blocks, not on the number of all blocks.

const kNoBlock = -1;
const kSmallBlocks = -2;  // all that are too small or too many to be sent
const kShades = 4;  // neighbours of one category differ a little
const blockPlots = [];
const byteWindow = {low: 0, high: 1};  // what the plots show, in shares of their axis
const pinned = {plot: null, block: kNoBlock};
const mostAllocated = Math.max(...traces.map((trace) => trace.maxTotal));

/** Without categories, a snapshot's blocks take colours by where they come from. */
const hasCategories = usedCategories.some((category) => page.categories[category].name !== 'unknown');

/** Spreads labels over colours and hatches; neighbours in the table should differ. */
const scatter = (value) => Math.imul(value + 1, 0x9e3779b1) >>> 8;

/** The colour group of each block: its category, or one of 8 · 7 pairs of hatch and colour. */
function groupsOf(blocks) {
  if (hasCategories) return blocks.category;
  return Uint8Array.from(blocks.label, (label) => scatter(label) % 56);
}

/** Colour and hatch of each group in this theme. */
function groupStyles() {
  if (hasCategories) {
    return page.categories.map(({hatch}, i) => ({color: theme().categories[i], hatch}));
  }
  const colors = theme().recipes.slice(1);  // without the grey
  return Array.from({length: 56}, (_, i) => ({color: colors[i % 7], hatch: Math.floor(i / 7)}));
}

/** For each group and shade: the fill, the ink of its hatch, its edge. */
function buildColors(styles) {
  const colors = new Uint32Array(styles.length * kShades * 4);
  const paper = parseColor(theme().plot);
  styles.forEach(({color}, group) => {
    for (let shade = 0; shade < kShades; ++shade) {
      const base = mixColors(parseColor(color), paper, shade * 0.07);
      const at = (group * kShades + shade) * 4;
      colors[at] = packColor(base);
      colors[at + 1] = packColor(mixColors(base, inkOn(base), 0.2));
      colors[at + 2] = colors[at + 3] = packColor(mixColors(base, paper, 0.6));
    }
  });
  return colors;
}

class BlockPicture {
  constructor(plot) {
    this.plot = plot;
    this.blocks = plot.trace.blocks;
    this.groups = groupsOf(this.blocks);
    this.live = [];
  }

  /** Paints all columns into an image, and remembers which block each pixel shows. */
  render(columns, width, height, lowBytes, highBytes) {
    this.prepare(width, height);
    this.rowsPerByte = height / (highBytes - lowBytes);
    this.lowBytes = lowBytes;
    this.live = [];
    let moment = -1;
    let next = 0;
    for (let c = 0; c < width; ++c) {
      if (columns[c] < 0) continue;
      if (columns[c] !== moment) {
        next = this.advance(columns[c], next);
        moment = columns[c];
      }
      this.paintColumn(c, moment);
    }
    this.finishLabels(width);
    return this.image;
  }

  prepare(width, height) {
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.ids = new Int32Array(width * height);
    }
    this.pixels.fill(0);
    this.ids.fill(kNoBlock);
    this.isPainted = new Uint8Array(this.blocks.count);
    this.paintedCount = 0;
    this.width = width;
    this.height = height;
    this.tile = tileSize(this.plot.scale);
    this.styles = groupStyles();
    this.colors = buildColors(this.styles);
    this.tiles = kHatches.map((_, hatch) => hatchTile(hatch, this.tile));
    const dim = parseColor(theme().dim_text);
    const paper = parseColor(theme().plot);
    this.smallColors = [packColor(mixColors(dim, paper, 0.55)), packColor(mixColors(dim, paper, 0.25))];
    this.edgeRows = Math.round(4 * this.plot.scale);
    this.labelRows = Math.round(1.25 * this.plot.em);
    this.runs = new Map();  // block -> where its rows stayed the same up to the last column
    this.labels = new Map();  // block -> its longest run
  }

  /** Brings the live blocks to a moment; `next` is the first block that is not looked at yet. */
  advance(moment, next) {
    const {first, last, count} = this.blocks;
    this.live = this.live.filter((block) => last[block] > moment);
    for (; next < count && first[next] <= moment; ++next) {
      if (last[next] > moment) this.live.push(next);
    }
    return next;
  }

  paintColumn(c, moment) {
    const {bytes} = this.blocks;
    let sum = -this.lowBytes;  // above the lowest row
    let from = 0;
    for (const block of this.live) {
      sum += bytes[block];
      if (sum <= 0) continue;
      const to = Math.min(Math.round(sum * this.rowsPerByte), this.height);
      if (to > from) this.paintBlock(c, from, to, block);
      from = to;
    }
    const total = this.plot.trace.moments.total[moment] - this.lowBytes;
    const end = Math.min(Math.round(total * this.rowsPerByte), this.height);
    for (let row = from; row < end; ++row) {
      const at = (this.height - 1 - row) * this.width + c;
      this.pixels[at] = this.smallColors[(row + c) % this.tile < 2 ? 1 : 0];
      this.ids[at] = kSmallBlocks;
    }
  }

  paintBlock(c, from, to, block) {
    const {pixels, ids, width, height, colors, tile} = this;
    const group = this.groups[block];
    const base = (group * kShades + block % kShades) * 4;
    const hatch = this.tiles[this.styles[group].hatch];
    const isTall = to - from >= this.edgeRows;
    const tileColumn = c % tile;
    this.paintedCount += 1 - this.isPainted[block];
    this.isPainted[block] = 1;
    for (let row = from; row < to; ++row) {
      const at = (height - 1 - row) * width + c;
      const isEdge = isTall && (row === to - 1 || (c > 0 && ids[at - 1] !== block));
      pixels[at] = colors[base + (isEdge ? 2 : 0) + hatch[row % tile * tile + tileColumn]];
      ids[at] = block;
    }
    if (to - from >= this.labelRows) this.extendRun(c, from, to, block);
  }

  extendRun(c, from, to, block) {
    const run = this.runs.get(block);
    if (run && run.from === from && run.to === to && run.end === c) {
      run.end = c + 1;
      return;
    }
    this.keepLongest(block, run);
    this.runs.set(block, {from, to, start: c, end: c + 1});
  }

  keepLongest(block, run) {
    const longest = this.labels.get(block);
    if (run && (!longest || run.end - run.start > longest.end - longest.start)) {
      this.labels.set(block, run);
    }
  }

  finishLabels() {
    for (const [block, run] of this.runs) this.keepLongest(block, run);
  }
}

// ---- drawing -----------------------------------------------------------------------------------

function paintBlocks(plot) {
  plot.picture ??= new BlockPicture(plot);
  const columns = plot.columnMoments = highestMoments(plot.trace, plot.columns);
  const room = roomBelowPhases(plot);
  const end = axisEnd(mostAllocated, Math.floor(room / (2.6 * plot.em)));
  const [low, high] = [byteWindow.low * end, byteWindow.high * end];
  const image = plot.picture.render(columns, plot.columns, room, low, high);
  const layer = plot.layer ??= document.createElement('canvas');
  layer.width = image.width;
  layer.height = image.height;
  layer.getContext('2d').putImageData(image, 0, 0);
  drawPhases(plot);
  plot.drawByteAxis(low, high, (bytes) => plot.bottom - (bytes - low) / (high - low) * room);
  plot.context.drawImage(layer, plot.left, plot.bottom - room);
  drawBlockLabels(plot);
}

/** Names of blocks where they have room: the second cue beside the colour. */
function drawBlockLabels(plot) {
  const {context, picture, em} = plot;
  plot.setFont(400, 0.82);
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  for (const [block, run] of picture.labels) {
    const room = run.end - run.start - em;
    if (room < 3 * em) continue;
    const label = fitText(context, blockName(picture.blocks, block), room);
    if (!label) continue;
    const color = picture.styles[picture.groups[block]].color;
    const y = plot.bottom - (run.from + run.to) / 2;
    const width = context.measureText(label).width;
    context.fillStyle = withAlpha(color, 0.85);
    context.fillRect(plot.left + run.start + 0.3 * em, y - 0.5 * em, width + 0.4 * em, em);
    context.fillStyle = `rgb(${inkOn(parseColor(color)).join(',')})`;
    context.fillText(label, plot.left + run.start + 0.5 * em, y);
  }
}

/** Outlines the block that the details are about. */
function paintBlockOverlay(plot, context) {
  const shown = pinned.block !== kNoBlock ? pinned : {plot: hovered.plot, block: hovered.block};
  if (shown.plot !== plot || shown.block < 0 || !plot.picture) return;
  const {ids, width, height, blocks} = plot.picture;
  const isShown = (moment) => moment >= blocks.first[shown.block] && moment < blocks.last[shown.block];
  context.fillStyle = withAlpha(theme().text, 0.45);
  for (let c = 0; c < width; ++c) {
    if (!isShown(plot.columnMoments[c])) continue;
    let from = -1;
    for (let row = 0, at = c; row < height; ++row, at += width) {
      const isInside = ids[at] === shown.block;
      if (isInside && from < 0) from = row;
      if (from >= 0 && (!isInside || row + 1 === height)) {
        context.fillRect(plot.left + c, plot.bottom - height + from, 1, row - from + (isInside ? 1 : 0));
        break;
      }
    }
  }
}

// ---- zooming into bytes ------------------------------------------------------------------------

/** Shows the shares [low, high) of the axis, moved or cut so that they stay on it. */
function showBytes(low, high) {
  const height = Math.min(Math.max(high - low, 1e-4), 1);
  byteWindow.low = Math.min(Math.max(low, 0), 1 - height);
  byteWindow.high = byteWindow.low + height;
  requestDraw('window');
}

function zoomBytes(factor, around = (byteWindow.low + byteWindow.high) / 2) {
  showBytes(around - (around - byteWindow.low) * factor, around + (byteWindow.high - around) * factor);
}

function panBytes(share) {
  const shift = (byteWindow.high - byteWindow.low) * share;
  showBytes(byteWindow.low + shift, byteWindow.high + shift);
}

function fitAll() {
  fitTime();
  showBytes(0, 1);
}

/** Control and wheel zoom into bytes; the wheel alone zooms into time. */
function onBlocksWheel(plot, event) {
  if (!event.ctrlKey && !event.altKey) return false;
  const box = plot.element.getBoundingClientRect();
  const share = 1 - ((event.clientY - box.top) * plot.scale - plot.top) / plot.rows;
  const around = byteWindow.low + share * (byteWindow.high - byteWindow.low);
  zoomBytes(Math.exp(Math.min(Math.max(event.deltaY, -300), 300) * 0.002), around);
  return true;
}

function applyBytesFragment(parameters) {
  const [low, high] = (parameters.get('bytes') ?? '').split('-').map(Number);
  if (low >= 0 && high > low) showBytes(low, high);
  else showBytes(0, 1);
}

function addBytesFragment(parameters) {
  const {low, high} = byteWindow;
  if (low > 0 || high < 1) parameters.set('bytes', `${Number(low.toFixed(5))}-${Number(high.toFixed(5))}`);
}

// ---- what is under the mouse -------------------------------------------------------------------

const hovered = {plot: null, block: kNoBlock};

function blockName(blocks, block) {
  return blocks.labels[blocks.label[block]][0] || 'a block without a name';
}

function blockAt(plot, event) {
  if (!plot.picture?.ids) return kNoBlock;
  const box = plot.element.getBoundingClientRect();
  const x = Math.floor((event.clientX - box.left) * plot.scale) - plot.left;
  const {width, height, ids} = plot.picture;
  const y = Math.floor((event.clientY - box.top) * plot.scale) - (plot.bottom - height);
  return x < 0 || y < 0 || x >= width || y >= height ? kNoBlock : ids[y * width + x];
}

function hoverBlock(plot, block) {
  if (hovered.plot === plot && hovered.block === block) return;
  hovered.plot = plot;
  hovered.block = block;
  showBlock();
}

/** A click keeps the details of a block until the next click. */
function pinBlock(plot, block) {
  const isSame = pinned.plot === plot && pinned.block === block;
  pinned.plot = isSame || block < 0 ? null : plot;
  pinned.block = isSame || block < 0 ? kNoBlock : block;
  showBlock();
}

function lifetimeText(trace, block) {
  const {blocks, moments} = trace;
  const start = moments.time[blocks.first[block]];
  const isFreed = blocks.last[block] < moments.count;
  const end = isFreed ? moments.time[blocks.last[block]] : trace.end_ns - page.start_ns;
  const ownStart = ownTime(trace, start);
  const about = moments.isExact ? '' : 'about ';
  const from = blocks.first[block] === 0 ? 'there from the start' : `from ${formatTime(ownStart)}`;
  const to = isFreed ? `to ${formatTime(ownTime(trace, end))}` : 'to the end';
  return `${about}${formatDuration(ownTime(trace, end) - ownStart)}, ${from} ${to}`;
}

/** Pairs of title and text about a block. */
function blockDetails(trace, block) {
  const {blocks} = trace;
  if (block === kSmallBlocks) {
    return [['', 'Small blocks'], ['What', `${formatCount(blocks.hiddenCount)} blocks that are too ` +
      'small to be drawn one by one']];
  }
  const [, module] = blocks.labels[blocks.label[block]];
  return [
    ['', blockName(blocks, block)],
    ['Module', module || kNoValue],
    ['Size', `${formatBytes(blocks.bytes[block])} (${formatExactBytes(blocks.bytes[block])})`],
    ['Lives', lifetimeText(trace, block)],
    ['Category', page.categories[blocks.category[block]].label],
  ];
}

function showBlock() {
  const area = document.getElementById('block-details');
  const {plot, block} = pinned.block !== kNoBlock ? pinned : hovered;
  if (plot === null || block === kNoBlock) {
    area.replaceChildren(makeCell('p', 'Point at a block to read it; a click keeps it.', 'dim'));
  } else {
    const [[, name], ...rows] = blockDetails(plot.trace, block);
    const list = document.createElement('dl');
    for (const [title, text] of rows) list.append(makeCell('dt', title), makeCell('dd', text));
    const letter = traces.length > 1 ? `${plot.trace.letter} · ` : '';
    area.replaceChildren(makeCell('p', letter + name, 'when'), list);
  }
  for (const each of blockPlots) each.drawCursor();
}

/** Up and down walk through the blocks at the crosshair. */
function stepThroughBlocks(plot, event) {
  const step = {ArrowUp: -1, ArrowDown: 1}[event.key];
  if (step === undefined || time.cursor === null || !plot.picture?.ids) return;
  event.preventDefault();
  const {ids, width, height} = plot.picture;
  const column = plot.columnAt(time.cursor);
  const at = (row) => ids[row * width + column];
  let row = 0;
  while (row < height && at(row) !== hovered.block) ++row;
  if (row === height) row = step > 0 ? 0 : height - 1;
  while (row >= 0 && row < height && (at(row) === hovered.block || at(row) === kNoBlock)) row += step;
  if (row >= 0 && row < height) hoverBlock(plot, at(row));
}

function addBlockPlot(trace, hasTimeAxis) {
  const parent = document.getElementById('block-plots');
  const plot = new Plot({parent, className: 'blocks', trace, hasTimeAxis, paint: paintBlocks,
    label: `Blocks of ${trace.name} over time. Left and right move the crosshair, up and down ` +
      'walk through the blocks there.'});
  plot.onHover = (event) => hoverBlock(plot, blockAt(plot, event));
  plot.onWheel = (event) => onBlocksWheel(plot, event);
  plot.onDrag = (rows) => panBytes(rows * plot.scale / plot.rows);
  plot.onClick = (event) => pinBlock(plot, blockAt(plot, event));
  plot.onLeave = () => hoverBlock(null, kNoBlock);
  plot.onKeyDown = (event) => moveCursor(event) || stepThroughBlocks(plot, event);
  plot.paintOverlay = (context) => paintBlockOverlay(plot, context);
  blockPlots.push(plot);
}

function buildBlocks() {
  fragmentParts.push(addBytesFragment);
  traces.forEach((trace, i) => {
    const {count, hiddenCount} = trace.blocks;
    const hidden = hiddenCount > 0 ? `, ${formatCount(hiddenCount)} smaller ones as one area` : '';
    const colors = hasCategories ? '' : '; a colour and hatch for each place that allocates';
    document.getElementById('block-plots').append(
      makePlotTitle(trace, `${formatCount(count)} blocks${hidden}${colors}`));
    addBlockPlot(trace, i + 1 === traces.length);
  });
  showBlock();
  onTimeChange((what) => {
    for (const plot of blockPlots) what === 'window' ? plot.draw() : plot.drawCursor();
    setState('blocks', blockPlots.map((plot) => plot.picture?.paintedCount ?? 0).join(' '));
  });
}
