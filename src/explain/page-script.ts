// The page's behaviour: choosing a kernel and a view, moving about in the drawing, what things say
// when pointed at. Plain JavaScript that needs nothing; without it the page shows everything, one
// after the other.

/** JavaScript. */
export const pageScript: string = String.raw`
'use strict';
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const one = (selector, from = document) => from.querySelector(selector);
const sections = all('.about');
const tip = one('#tip');
let chosen = -1;

/* Views. */
const tabs = all('[role=tab]');
function showView(name) {
  for (const tab of tabs) {
    const on = tab.dataset.view === name;
    tab.setAttribute('aria-selected', on);
    tab.tabIndex = on ? 0 : -1;
    one('#view-' + tab.dataset.view).hidden = !on;
  }
  one('.zoom').hidden = name !== 'cards' && name !== 'nodes';
  const drawing = drawings.get(name);
  const first = drawing && !drawing.seen;
  if (first) { drawing.seen = true; drawing.fit(); }
  if (drawing && chosen >= 0) drawing.reveal(chosen, first && name === 'nodes');
}
const viewNow = () => tabs.find((tab) => tab.getAttribute('aria-selected') === 'true').dataset.view;
one('[role=tablist]').addEventListener('keydown', (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step === undefined) return;
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  showView(next.dataset.view);
});
for (const tab of tabs) tab.addEventListener('click', () => showView(tab.dataset.view));

/* Drawings: a window on the SVG's own coordinates. */
const drawings = new Map(all('svg.drawing').map((svg) => [svg.id, drawingOf(svg)]));
function drawingOf(svg) {
  const whole = { width: Number(svg.dataset.width), height: Number(svg.dataset.height) };
  let [x, y, scale] = [0, 0, 1];
  const room = () => ({ width: svg.clientWidth || 1, height: svg.clientHeight || 1 });
  function apply() {
    const { width, height } = room();
    svg.setAttribute('viewBox', [x, y, width / scale, height / scale].join(' '));
    /* Where a card's text is too small, it says less, in larger letters. */
    svg.classList.toggle('distant', svg.id === 'cards' && scale < 0.68);
  }
  function zoom(factor, at) {
    const { width, height } = room();
    const { left, top } = svg.getBoundingClientRect();
    const [px, py] = at ? [at.x - left, at.y - top] : [width / 2, height / 2];
    const next = Math.min(4, Math.max(0.02, scale * factor));
    x += px / scale - px / next;
    y += py / scale - py / next;
    scale = next;
    apply();
  }
  function move(dx, dy) { x -= dx / scale; y -= dy / scale; apply(); }
  function fit(smallestScale = 'rows' in svg.dataset ? 0 : svg.id === 'cards' ? 0.4 : 0.7) {
    const { width, height } = room();
    scale = Math.max(smallestScale, Math.min(1.25, width / whole.width, height / whole.height));
    x = (whole.width - width / scale) / 2;
    y = whole.height * scale <= height ? (whole.height - height / scale) / 2 : 0;
    apply();
  }
  function reveal(kernel, whole) {
    const box = one('[data-kernel="' + kernel + '"] .box', svg).getBBox();
    const { width, height } = room();
    if (whole) scale = Math.max(0.3, Math.min(scale, width / (box.width + 32), height / (box.height + 32)));
    const [w, h] = [width / scale, height / scale];
    if (box.x < x || box.x + box.width > x + w) x = box.width > w ? box.x - 16 : box.x + box.width / 2 - w / 2;
    if (box.y < y || box.y + box.height > y + h) y = box.height > h ? box.y - 16 : box.y + box.height / 2 - h / 2;
    apply();
  }
  svg.addEventListener('wheel', (event) => {
    event.preventDefault();
    if (event.shiftKey && !event.ctrlKey) move(-event.deltaY, 0);
    else zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016)), { x: event.clientX, y: event.clientY });
  }, { passive: false });
  let from, moved;
  svg.addEventListener('pointerdown', (event) => { from = { x: event.clientX, y: event.clientY }; moved = false; });
  svg.addEventListener('pointermove', (event) => {
    if (from === undefined || event.buttons === 0) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!moved && Math.hypot(dx, dy) < 4) return;
    if (!moved) svg.setPointerCapture(event.pointerId);
    moved = true;
    svg.classList.add('moving');
    move(dx, dy);
    from = { x: event.clientX, y: event.clientY };
  });
  svg.addEventListener('pointerup', () => { from = undefined; svg.classList.remove('moving'); });
  svg.addEventListener('click', (event) => {
    const edge = event.target.closest('.edge');
    if (!moved && edge !== null) {
      choose(Number(edge.dataset.to));
      const row = one('.memory [data-node="' + edge.dataset.values.split(' ')[0] + '"]', sections[chosen]);
      for (const old of all('tr.found')) old.classList.remove('found');
      row?.classList.add('found');
      row?.scrollIntoView({ block: 'center' });
      return;
    }
    const kernel = event.target.closest('.kernel');
    if (moved || kernel === null) return;
    choose(Number(kernel.dataset.kernel));
    const node = event.target.closest('.node');
    if (node !== null) find(node.dataset.node);
  });
  svg.addEventListener('keydown', (event) => {
    const kernel = event.target.closest('.kernel');
    if (kernel === null || (event.key !== 'Enter' && event.key !== ' ')) return;
    choose(Number(kernel.dataset.kernel));
    event.preventDefault();
  });
  /* In the order they are drawn; with rows, up and down lead to the nearest card of the next row. */
  const cards = all('.kernel', svg);
  function step(key) {
    const at = cards.findIndex((card) => Number(card.dataset.kernel) === chosen);
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
    let to = cards[at + by];
    if ('rows' in svg.dataset && (key === 'ArrowUp' || key === 'ArrowDown')) {
      const place = (card) => one('.box', card).getBBox();
      const own = place(cards[at]);
      const beyond = cards.filter((card) => (place(card).y - own.y) * by > 1);
      const far = (card) => Math.abs(place(card).y - own.y) * 100 + Math.abs(place(card).x - own.x);
      to = beyond.length ? beyond.reduce((a, b) => (far(b) < far(a) ? b : a)) : undefined;
    }
    choose(Number((to ?? cards[at]).dataset.kernel), svg);
  }
  return { svg, seen: false, fit, zoom, reveal, apply, step };
}

/* Keys, wherever the focus is that has no use for them itself. */
document.addEventListener('keydown', (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === 'Escape') {
    if (!help.hidden) showHelp(false);
    else if (search?.value) { search.value = ''; look(); }
    if (target === search) one('.kernel.on', drawings.get(viewNow())?.svg ?? document)?.focus();
    return;
  }
  if (target.closest('input')) return;
  const drawing = drawings.get(viewNow());
  if (key === '/' && search) search.focus();
  else if (key === '?') showHelp(help.hidden);
  else if (key === 'f' || key === '0') drawing?.fit(0);
  else if (key === '+' || key === '=') drawing?.zoom(1.25);
  else if (key === '-') drawing?.zoom(0.8);
  else if (/^Arrow/.test(key) && drawing && sections.length && (target === document.body || target.closest('svg'))) drawing.step(key);
  else return;
  event.preventDefault();
});
const help = one('#help');
function showHelp(on) {
  help.hidden = !on;
  one('#ask').setAttribute('aria-expanded', on);
}
one('#ask').addEventListener('click', () => showHelp(help.hidden));
document.addEventListener('pointerdown', (event) => { if (!event.target.closest('#help, #ask')) showHelp(false); });

/* Search: a kernel's number, or what its section says. Names first, then everything. */
const search = one('#search');
const texts = sections.map((section) => section.textContent.toLowerCase());
const names = sections.map((section) => one('h2', section).textContent.toLowerCase());
let hits = [];
function look() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.includes(word));
  const places = [...sections.keys()];
  const named = places.filter((i) => String(i) === words[0] || has(names[i]));
  hits = words.length === 0 ? [] : [...named, ...places.filter((i) => !named.includes(i) && has(texts[i]))];
  for (const kernel of all('[data-kernel]')) {
    const hit = hits.includes(Number(kernel.dataset.kernel));
    kernel.classList.toggle('hit', hit);
    kernel.classList.toggle('dim', words.length > 0 && !hit);
  }
  one('#hits').value = words.length === 0 ? '' : hits.length === 0 ? 'nothing found' : hits.length + ' found';
}
function next(by) {
  if (hits.length === 0) return;
  const at = hits.indexOf(chosen);
  const to = at < 0 ? 0 : (at + by + hits.length) % hits.length;
  choose(hits[to]);
  one('#hits').value = to + 1 + ' of ' + hits.length;
}
search?.addEventListener('input', look);
search?.addEventListener('keydown', (event) => { if (event.key === 'Enter') next(event.shiftKey ? -1 : 1); });

one('.zoom').addEventListener('click', (event) => {
  const drawing = drawings.get(viewNow());
  const act = event.target.dataset.zoom;
  if (act === 'fit') drawing.fit(0);
  else if (act !== undefined) drawing.zoom(Number(act));
});
addEventListener('resize', () => { for (const drawing of drawings.values()) if (drawing.seen) drawing.apply(); });

/* Kernels. */
function choose(place, focusIn) {
  if (sections[place] === undefined) return;
  show(place);
  one('#spoken').textContent = one('h2', sections[place]).textContent;
  history.replaceState(null, '', '#kernel-' + place);
  drawings.get(viewNow())?.reveal(place);
  if (focusIn) one('[data-kernel="' + place + '"]', focusIn).focus();
}
function show(place) {
  if (sections[place] === undefined) return;
  chosen = place;
  sections.forEach((section, i) => { section.hidden = i !== place; });
  for (const kernel of all('[data-kernel]')) {
    const on = Number(kernel.dataset.kernel) === place;
    kernel.classList.toggle('on', on);
    if (kernel.matches('.kernel')) { kernel.tabIndex = on ? 0 : -1; kernel.setAttribute('aria-pressed', on); }
  }
  for (const edge of all('.edge')) edge.classList.toggle('on', [edge.dataset.from, edge.dataset.to].includes(String(place)));
  find(undefined);
  one('.panel').scrollTop = 0;
  /* Functions that kernels share stand before the kernel itself. */
  const code = one('pre', sections[place]);
  const entry = all('.a', code).find((word) => word.textContent === '@compute');
  code.scrollTop = entry ? entry.offsetTop - 10 : 0;
}

/* The same node wherever it is drawn or named. */
function find(node) {
  for (const found of all('.node.found, .edge.found')) found.classList.remove('found');
  if (node === undefined) return;
  for (const found of all('.node[data-node="' + node + '"], .edge[data-values~="' + node + '"]')) found.classList.add('found');
}
one('.panel').addEventListener('pointerover', (event) => find(event.target.closest('[data-node]')?.dataset.node));

function follow() {
  const kernel = /^#(kernel|memory|source)-(\d+)$/.exec(location.hash);
  if (kernel !== null) {
    choose(Number(kernel[2]));
    if (kernel[1] !== 'kernel') one('#' + kernel[1] + '-' + kernel[2])?.scrollIntoView();
    return;
  }
  if (!/^#ir-\d+$/.test(location.hash)) return;
  showView('graph');
  const line = one(location.hash);
  for (const old of all('pre .found')) old.classList.remove('found');
  line?.classList.add('found');
  line?.scrollIntoView({ block: 'center' });
}
addEventListener('hashchange', follow);
document.addEventListener('click', (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link !== null && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    history.pushState(null, '', link.getAttribute('href'));
    follow();
  }
  if (event.target.closest('.locate') !== null) {
    if (!drawings.has(viewNow())) showView('cards');
    const drawing = drawings.get(viewNow());
    drawing.reveal(chosen);
    one('.kernel.on', drawing.svg).focus();
  }
  const copy = event.target.closest('.copy');
  if (copy !== null) navigator.clipboard?.writeText(one('pre', copy.closest('.code')).textContent).then(() => { copy.textContent = 'copied'; });
});

/* What things say. */
document.addEventListener('pointermove', (event) => {
  const told = event.target.closest?.('[data-tip]');
  tip.hidden = !told || event.buttons !== 0;
  if (tip.hidden) return;
  tip.textContent = told.dataset.tip;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + 'px';
  tip.style.top = (event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18) + 'px';
});

show(Number(document.body.dataset.start));
showView(document.body.dataset.view);
follow();
`;
