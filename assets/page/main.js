'use strict';
// Puts the page together.

function describePage() {
  root.classList.toggle('two', traces.length > 1);
  const names = document.getElementById('names');
  for (const trace of traces) {
    const entry = document.createElement('span');
    entry.className = 'trace';
    if (traces.length > 1) {
      entry.append(makeCell('span', trace.letter, `badge badge-${trace.letter.toLowerCase()}`));
    }
    entry.append(makeCell('b', trace.name), makeCell('span', trace.summary, 'dim'));
    names.append(entry);
  }
  const facts = [page.workload, ...page.origin].filter(Boolean).map(visible);
  document.getElementById('facts').textContent = facts.join(' · ');
  const notes = document.getElementById('notes');
  for (const note of pageNotes()) notes.append(makeCell('li', note));
}

function pageNotes() {
  const notes = page.notes.map((note) => `Note: ${visible(note)}.`);
  if (page.alignment_note) notes.push(visible(page.alignment_note));
  if (traces.length > 1 && page.is_aligned) {
    notes.push('The time axis is that of A; B is stretched to its phases and modules.');
  }
  if (!page.has_clock) notes.push('The file has no times: the axis counts the allocator\'s events.');
  if (traces.some((trace) => !trace.moments.isExact)) {
    notes.push('The capture has more changes than a page can hold: it shows the highest moment of ' +
      'each of many thousand short spans, and the largest blocks.');
  }
  return notes;
}

function connectButtons() {
  const actions = {
    'zoom-in': () => zoomTime(0.5),
    'zoom-out': () => zoomTime(2),
    fit: fitAll,
    'bytes-in': () => zoomBytes(0.5),
    'bytes-out': () => zoomBytes(2),
    'bytes-up': () => panBytes(0.25),
    'bytes-down': () => panBytes(-0.25),
    'bytes-fit': fitAll,
    earlier: () => panTime(-0.25),
    later: () => panTime(0.25),
    theme: () => {
      applyTheme(themeName === 'dark' ? 'light' : 'dark');
      storeTheme(themeName);
      requestDraw('window');
    },
  };
  for (const [id, action] of Object.entries(actions)) {
    document.getElementById(id).addEventListener('click', action);
  }
  document.addEventListener('keydown', onKey);
  prefersLight.addEventListener('change', () => {
    chooseTheme(readFragment().get('theme'));
    requestDraw('window');
  });
}

function applyFragment() {
  const parameters = readFragment();
  chooseTheme(parameters.get('theme'));
  applyTimeFragment(parameters);
  applyBytesFragment(parameters);
  applyLedgerFragment(parameters);
}

function start() {
  describePage();
  buildTimeline();
  buildBlocks();
  buildLedger();
  connectButtons();
  fragmentParts.push((parameters) => {
    const wanted = readFragment().get('theme');
    if (wanted) parameters.set('theme', themeName);
    if (time.cursor !== null) parameters.set('cursor', fraction(time.cursor));
  });
  window.addEventListener('hashchange', applyFragment);
  applyFragment();
  const began = performance.now();
  drawPending();
  setState('drawMs', Math.round(performance.now() - began));
  setState('state', 'ready');
}

start();
