'use strict';
// What the page is doing, as data attributes of <html>, for tests and for reports of mistakes.

const root = document.documentElement;

function setState(name, value) {
  root.dataset[name] = String(value);
}

function countError(text) {
  setState('errors', Number(root.dataset.errors) + 1);
  setState('error', text);
}

setState('state', 'loading');
setState('errors', 0);
window.addEventListener('error', (event) => countError(event.message));
window.addEventListener('unhandledrejection', (event) => countError(String(event.reason)));
document.addEventListener('securitypolicyviolation', (event) =>
  countError(`blocked: ${event.violatedDirective}`));
