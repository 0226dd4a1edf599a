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
  if (first) { drawing.seen = true; drawing.fit(0.7); }
  if (drawing && chosen >= 0) drawing.reveal(chosen, first);
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
  }
  function zoom(factor, at) {
    const { width, height } = room();
    const { left, top } = svg.getBoundingClientRect();
    const [px, py] = at ? [at.x - left, at.y - top] : [width / 2, height / 2];
    const next = Math.min(4, Math.max(0.03, scale * factor));
    x += px / scale - px / next;
    y += py / scale - py / next;
    scale = next;
    apply();
  }
  function move(dx, dy) { x -= dx / scale; y -= dy / scale; apply(); }
  function fit(smallestScale) {
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
    const kernel = event.target.closest('.kernel');
    if (moved || kernel === null) return;
    choose(Number(kernel.dataset.kernel));
    const node = event.target.closest('.node');
    if (node !== null) find(node.dataset.node);
  });
  svg.addEventListener('keydown', (event) => {
    const kernel = event.target.closest('.kernel');
    const place = kernel === null ? chosen : Number(kernel.dataset.kernel);
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (event.key === 'Enter' || event.key === ' ') choose(place);
    else if (step !== undefined) choose(Math.min(sections.length - 1, Math.max(0, place + step)), svg);
    else if (event.key === '+' || event.key === '=') zoom(1.25);
    else if (event.key === '-') zoom(0.8);
    else if (event.key === '0') fit(0);
    else return;
    event.preventDefault();
  });
  return { seen: false, fit, zoom, reveal, apply };
}
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
  for (const found of all('.node.found')) found.classList.remove('found');
  if (node !== undefined) for (const found of all('.node[data-node="' + node + '"]')) found.classList.add('found');
}
one('.panel').addEventListener('pointerover', (event) => find(event.target.closest('[data-node]')?.dataset.node));

function follow() {
  const kernel = /^#kernel-(\d+)$/.exec(location.hash);
  if (kernel !== null) return choose(Number(kernel[1]));
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
