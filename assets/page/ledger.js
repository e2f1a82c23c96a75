'use strict';
// The ledger: every tensor that autograd saves for backward, sorted and filtered, A beside B.

const kRowsAtOnce = 150;
const ledger = page.ledger;
const query = {sort: 'bytes', order: 'desc', filter: '', changes: false};
let shownRows = [];
let drawnCount = 0;

// `optional` columns need something that not every file has; `minor` ones give way on a phone.
const kColumns = [
  {key: 'tensor', title: 'Tensor'},
  {key: 'module', title: 'Module', className: 'path'},
  {key: 'bytes', title: 'Bytes', isNumber: true},
  {key: 'other_bytes', title: 'B', isNumber: true, optional: 'has_other'},
  {key: 'difference_bytes', title: 'B - A', isNumber: true, optional: 'has_other'},
  {key: 'shape', title: 'Shape', className: 'minor'},
  {key: 'saved_by', title: 'Saved by', className: 'minor'},
  {key: 'dtype', title: 'Type', className: 'minor'},
  {key: 'lifetime_ns', title: 'Lifetime', isNumber: true, className: 'minor'},
  {key: 'closed_form', title: 'Closed form', className: 'minor', optional: 'has_closed_form'},
].filter((column) => !column.optional || ledger[column.optional]);

for (const row of ledger.rows) {
  for (const key of ['tensor', 'module', 'saved_by', 'shape']) row[key] = visible(row[key]);
  row.searched = [row.tensor, row.module, row.saved_by, row.shape, row.dtype,
    page.categories[row.category].label].join(' ').toLowerCase();
}
const largestBytes = ledger.rows.reduce((most, row) => Math.max(most, row.bytes ?? 0), 1);

function compareRows(a, b) {
  const column = kColumns.find(({key}) => key === query.sort);
  const [x, y] = [a[query.sort], b[query.sort]];
  if (!column.isNumber) return x < y ? -1 : x > y ? 1 : 0;
  return (x ?? -Infinity) - (y ?? -Infinity) || 0;
}

function selectRows() {
  const words = query.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = ledger.rows.filter((row) =>
    (!query.changes || row.changed) && words.every((word) => row.searched.includes(word)));
  const direction = query.order === 'asc' ? 1 : -1;
  return rows.sort((a, b) => direction * compareRows(a, b));
}

// ---- cells -------------------------------------------------------------------------------------

const kCells = {
  tensor(cell, row) {
    cell.append(makeSwatch(row.category), row.tensor);
  },
  module(cell, row) {
    cell.append(makeCell('bdi', row.module));
  },
  bytes(cell, row) {
    cell.textContent = bytesOrNone(row.bytes);
    cell.title = row.bytes === null ? '' : formatExactBytes(row.bytes);
    const bar = document.createElement('span');
    bar.className = `bar category-${row.category}`;
    bar.style.width = `${(row.bytes ?? 0) / largestBytes * 100}%`;
    cell.append(bar);
  },
  lifetime_ns(cell, row) {
    cell.textContent = row.lifetime_ns === null ? kNoValue : formatDuration(row.lifetime_ns);
  },
  closed_form(cell, row) {
    cell.textContent = row.closed_form;
    if (row.closed_form_differs) cell.classList.add('bad');
  },
  other_bytes(cell, row) {
    cell.textContent = bytesOrNone(row.other_bytes);
  },
  difference_bytes(cell, row) {
    cell.textContent = formatSignedBytes(row.difference_bytes);
    cell.classList.add(row.difference_bytes < 0 ? 'good' : row.difference_bytes > 0 ? 'bad' : 'dim');
  },
};

function makeLedgerRow(row) {
  return makeRow(kColumns.map(({key, className, isNumber}) => {
    const cell = document.createElement('td');
    cell.className = [className, isNumber ? 'number' : ''].filter(Boolean).join(' ');
    if (kCells[key]) kCells[key](cell, row);
    else cell.textContent = row[key];
    if (!cell.title && !isNumber) cell.title = row[key];
    return cell;
  }));
}

// ---- the table ---------------------------------------------------------------------------------

/** Adds rows as the reader comes near them: a table of many thousands would be slow. */
function drawMoreRows() {
  const body = document.getElementById('ledger-rows');
  const end = Math.min(drawnCount + kRowsAtOnce, shownRows.length);
  const rows = document.createDocumentFragment();
  for (; drawnCount < end; ++drawnCount) rows.append(makeLedgerRow(shownRows[drawnCount]));
  body.append(rows);
  document.getElementById('ledger-end').hidden = drawnCount >= shownRows.length;
}

function describeRows() {
  const ofA = shownRows.filter((row) => row.bytes !== null);
  const sum = ofA.reduce((bytes, row) => bytes + row.bytes, 0);
  const all = ledger.rows.filter((row) => row.bytes !== null);
  const total = all.reduce((bytes, row) => bytes + row.bytes, 0);
  setState('sum', sum);
  const isAll = ofA.length === all.length;
  return isAll ? `${formatCount(all.length)} tensors, ${formatBytes(total)}`
    : `${formatCount(ofA.length)} of ${formatCount(all.length)} tensors, ` +
      `${formatBytes(sum)} of ${formatBytes(total)}`;
}

function fillSums() {
  const sumOf = (key) => shownRows.reduce((sum, row) => sum + (row[key] ?? 0), 0);
  const cells = kColumns.map(({key, className, isNumber}, i) => {
    const isSum = ['bytes', 'other_bytes', 'difference_bytes'].includes(key);
    const format = key === 'difference_bytes' ? formatSignedBytes : formatBytes;
    const text = i === 0 ? 'Sum' : isSum ? format(sumOf(key)) : '';
    return makeCell('td', text, [className, isNumber ? 'number' : ''].filter(Boolean).join(' '));
  });
  document.getElementById('ledger-sums').replaceChildren(makeRow(cells));
}

function markSortedColumn() {
  for (const header of document.querySelectorAll('#ledger-head th')) {
    const isSorted = header.dataset.key === query.sort;
    const order = query.order === 'asc' ? 'ascending' : 'descending';
    header.setAttribute('aria-sort', isSorted ? order : 'none');
  }
}

function drawLedger() {
  shownRows = selectRows();
  drawnCount = 0;
  document.getElementById('ledger-rows').replaceChildren();
  document.getElementById('ledger-total').textContent = describeRows();
  fillSums();
  markSortedColumn();
  drawMoreRows();
  document.getElementById('ledger-scroll').scrollTop = 0;
  setState('rows', shownRows.length);
  setState('firstRow', shownRows.length > 0 ? `${shownRows[0].tensor} ${shownRows[0].module}` : '');
}

function sortBy(column) {
  const isSame = query.sort === column.key;
  const first = column.isNumber ? 'desc' : 'asc';
  query.order = isSame ? (query.order === 'asc' ? 'desc' : 'asc') : first;
  query.sort = column.key;
  drawLedger();
  writeFragment();
}

function buildHeader() {
  const row = makeRow(kColumns.map((column) => {
    const header = document.createElement('th');
    header.className = [column.className, column.isNumber ? 'number' : ''].filter(Boolean).join(' ');
    header.dataset.key = column.key;
    header.scope = 'col';
    const button = makeCell('button', column.title);
    button.type = 'button';
    button.addEventListener('click', () => sortBy(column));
    header.append(button);
    return header;
  }));
  document.getElementById('ledger-head').append(row);
}

function buildNotes() {
  const comparison = document.getElementById('ledger-comparison');
  comparison.textContent = ledger.comparison;
  comparison.className = ledger.comparison_is_good ? 'good' : 'bad';
  for (const form of ledger.closed_forms) {
    const text = `${form.is_equal ? '✓' : '≠'} ${form.text}`;
    document.getElementById('ledger-forms').append(makeCell('p', text, form.is_equal ? 'good' : 'warning'));
  }
}

function applyLedgerFragment(parameters) {
  const isColumn = (key) => kColumns.some((column) => column.key === key);
  const sort = parameters.get('sort');
  query.sort = isColumn(sort) ? sort : 'bytes';
  query.order = parameters.get('order') === 'asc' ? 'asc' : 'desc';
  query.filter = parameters.get('filter') ?? '';
  query.changes = ledger.has_other && parameters.get('changes') === '1';
  document.getElementById('filter').value = query.filter;
  document.getElementById('changes').checked = query.changes;
  if (ledger.rows.length > 0) drawLedger();
}

function addLedgerFragment(parameters) {
  if (query.sort !== 'bytes') parameters.set('sort', query.sort);
  if (query.order !== 'desc') parameters.set('order', query.order);
  if (query.filter) parameters.set('filter', query.filter);
  if (query.changes) parameters.set('changes', '1');
}

function buildLedger() {
  fragmentParts.push(addLedgerFragment);
  if (ledger.rows.length === 0) {
    document.getElementById('ledger-filled').hidden = true;
    document.getElementById('ledger-empty').hidden = false;
    setState('rows', 0);
    return;
  }
  buildHeader();
  buildNotes();
  const filter = document.getElementById('filter');
  filter.addEventListener('input', () => {
    query.filter = filter.value;
    drawLedger();
    writeFragment();
  });
  const changes = document.getElementById('changes');
  changes.addEventListener('change', () => {
    query.changes = changes.checked;
    drawLedger();
    writeFragment();
  });
  document.getElementById('changes-label').hidden = !ledger.has_other;
  const end = document.getElementById('ledger-end');
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) drawMoreRows();
  }, {rootMargin: '400px'}).observe(end);
}
