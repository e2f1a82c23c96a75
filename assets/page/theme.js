'use strict';
// Colours of the window's two themes, and hatches: the second cue of a category.

const kThemeKey = 'temposcope-theme';
const prefersLight = window.matchMedia('(prefers-color-scheme: light)');
let themeName = 'dark';
const theme = () => page.themes[themeName];

const parseColor = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const mixColors = (a, b, t) => a.map((value, i) => Math.round(value + (b[i] - value) * t));
/** A pixel of an ImageData as one number; every machine that runs browsers is little-endian. */
const packColor = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

function withAlpha(hex, alpha) {
  return `rgba(${parseColor(hex).join(',')},${alpha})`;
}

function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => {
    const v = value / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
/** Black or white, whichever reads better on the colour. */
const inkOn = (rgb) => (luminance(rgb) > 0.179 ? [0, 0, 0] : [255, 255, 255]);

// By the values of profiler::Hatch, on tiles of 8 units; x and y count units from the lower left.
const kHatches = [
  () => false,
  (x, y) => (x + 8 - y) % 8 < 1,
  (x, y) => (x + y) % 8 < 1,
  (x, y) => (x + y) % 8 < 1 || (x + 8 - y) % 8 < 1,
  (x, y) => y % 4 < 1,
  (x) => x % 4 < 1,
  (x, y) => x % 8 < 1 || y % 8 < 1,
  (x, y) => (x % 4 < 1.5 && y % 4 < 1.5),
  (x, y) => y % 4 < 1 && (x + y) % 8 < 5,
  (x, y) => x % 4 < 1 && (x + y) % 8 < 5,
  (x, y) => (y % 8 === 2 && x % 8 < 5) || (x % 8 === 2 && y % 8 < 5),
];

/** A tile of `size` pixels a side, row by row from below; 1 where the hatch has ink. */
function hatchTile(hatch, size) {
  const tile = new Uint8Array(size * size);
  const unit = size / 8;
  for (let y = 0; y < size; ++y) {
    for (let x = 0; x < size; ++x) {
      tile[y * size + x] = kHatches[hatch](Math.floor(x / unit), Math.floor(y / unit)) ? 1 : 0;
    }
  }
  return tile;
}

const tileSize = (scale) => 8 * Math.max(1, Math.round(scale));

/** The hatch of a category as a pattern for a canvas. */
function hatchPattern(context, category, scale) {
  const size = tileSize(scale);
  const tile = hatchTile(page.categories[category].hatch, size);
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = size;
  const image = new ImageData(size, size);
  const ink = inkOn(parseColor(theme().categories[category]));
  for (let y = 0; y < size; ++y) {
    for (let x = 0; x < size; ++x) {
      if (tile[y * size + x]) image.data.set([...ink, 56], ((size - 1 - y) * size + x) * 4);
    }
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
  return context.createPattern(canvas, 'repeat');
}

function applyTheme(name) {
  themeName = name;
  for (const [key, value] of Object.entries(theme())) {
    if (typeof value === 'string') root.style.setProperty('--' + key.replace('_', '-'), value);
  }
  theme().categories.forEach((color, i) => {
    root.style.setProperty(`--category-${i}`, color);
    const ink = inkOn(parseColor(color));
    root.style.setProperty(`--category-ink-${i}`, `rgba(${ink.join(',')},.45)`);
  });
  root.style.setProperty('color-scheme', name);
  setState('theme', name);
  const button = document.getElementById('theme');
  const other = name === 'dark' ? 'light' : 'dark';
  button.textContent = `${other[0].toUpperCase()}${other.slice(1)} theme`;
}

/** The choice of an earlier visit; a file that the browser gives no storage has none. */
function storedTheme() {
  try {
    const name = localStorage.getItem(kThemeKey);
    return name in page.themes ? name : null;
  } catch {
    return null;
  }
}

function storeTheme(name) {
  try {
    localStorage.setItem(kThemeKey, name);
  } catch {
    // Without storage the next visit follows the system again.
  }
}

function chooseTheme(wanted) {
  const isKnown = wanted !== null && Object.hasOwn(page.themes, wanted);
  applyTheme(isKnown ? wanted : storedTheme() ?? (prefersLight.matches ? 'light' : 'dark'));
}

/** A square in the colour and with the hatch of a category. */
function makeSwatch(category) {
  const swatch = document.createElement('span');
  swatch.className = `swatch category-${category} hatch-${page.categories[category].hatch}`;
  swatch.setAttribute('aria-hidden', 'true');
  return swatch;
}
