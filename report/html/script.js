/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the rows of the table from the data in the page, when they come into view. The fragment of
 * the URL has the filters, the order and the opened rows. All figures are texts of the
 * data, except sums of filtered rows. */
(() => {
  'use strict';
  const CHUNK = 50;                           // number of rows that are made at a time
  const COLUMNS = 8;
  const $ = id => document.getElementById(id);
  const table = $('table'), tools = $('tools'), heads = [...table.querySelectorAll('th button')];
  const data = JSON.parse($('data').textContent);

  /* Returns the rows as objects, with texts instead of their indices. */
  const read = ({keys, rows}) => rows.map((row, index) => {
    const item = {index};
    keys.forEach((key, i) => {
      if (key[0] === '$') item[key.slice(1)] = data.strings[row[i]];
      else item[key] = row[i];
    });
    return item;
  });
  const groups = read(data.groups), matmuls = read(data.matmuls);
  const lower = (...texts) => texts.join('\n').toLowerCase();
  for (const g of groups) {
    g.id = 'g' + g.index;
    g.matmuls = [];
    g.text = lower(g.layer, g.shape, g.reason, g.verdict);
  }
  for (const m of matmuls) {
    m.id = 'm' + m.index;
    m.layer = m.op_name || m.name;
    m.text = lower(m.name, m.output, m.op_name, m.source, m.blocker);
    m.group = groups[m.group];
    m.group.matmuls.push(m);
  }

  /* ------------------------------------------------------------------------------- elements */

  const make = (tag, className, ...content) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...content);
    return element;
  };
  const link = (text, href) => {
    const element = make('a', '', text);
    element.href = href;
    return element;
  };

  /* Appends the elements of the items to `box`: the first ones now, and more when the end of the
   * box comes into view. */
  const waiting = new Map();                  // from an element at the end of a box to a function
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) if (entry.isIntersecting) waiting.get(entry.target)?.(CHUNK);
  }, {rootMargin: '1000px'});
  const fill = (box, items, element, least = 0) => {
    let at = 0;
    const end = make(box.tagName === 'TABLE' ? 'tbody' : 'tr', 'end');
    const add = count => {
      const made = document.createDocumentFragment();
      for (const last = Math.min(at + count, items.length); at < last; at++)
        made.append(element(items[at]));
      end.before(made);
      seen.unobserve(end);
      if (at < items.length) return seen.observe(end);  // reports again if it is still in view
      waiting.delete(end);
      end.remove();
    };
    box.append(end);
    waiting.set(end, add);
    add(Math.max(CHUNK, least));
  };

  /* ---------------------------------------------------------------------------------- state */

  const filters = ['words', 'verdict', 'reason', 'change', 'rows'];
  const state = {sort: 'saving', back: false, open: new Set()};
  const save = () => {
    const hash = new URLSearchParams();
    for (const name of filters) if (state[name]) hash.set(name, state[name]);
    if (state.sort !== 'saving' || state.back) hash.set('sort', (state.back ? '-' : '') + state.sort);
    if (state.open.size) hash.set('open', [...state.open].join(' '));
    history.replaceState(null, '', '#' + hash);
  };
  const load = () => {
    const hash = new URLSearchParams(location.hash.slice(1)), sort = hash.get('sort') || 'saving';
    state.back = sort[0] === '-';
    state.sort = state.back ? sort.slice(1) : sort;
    state.open = new Set(hash.get('open')?.split(' '));
    for (const name of filters) {
      state[name] = hash.get(name) || '';
      if (tools.elements[name]) tools.elements[name].value = state[name];
    }
  };

  /* ----------------------------------------------------------------------------------- rows */

  const cell = (className, ...content) => make('td', className, ...content);
  const note = text => make('span', 'note', text);
  /* A name that may be broken after `/` and `_`, and within a long part. */
  const named = (className, text) => {
    const parts = text.match(/[^/_]{1,40}[/_]*|[/_]+/g) ?? [];
    return make('span', className, ...parts.flatMap((part, i) => i ? [make('wbr'), part] : [part]));
  };
  const row = (item, title, counts, toggle) => {
    const button = make('button', 'opener', title), open = state.open.has(item.id);
    button.type = 'button';
    button.setAttribute('aria-expanded', open);
    button.addEventListener('click', () => {
      const opens = !state.open.delete(item.id);
      if (opens) state.open.add(item.id);
      button.setAttribute('aria-expanded', opens);
      toggle(opens);
      save();
    });
    const share = cell('number minor share', item.share);
    share.style.setProperty('--share', item.share.replace(' ', ''));
    const made = make('tr', '', make('th', '', button), cell('number', item.saves),
      cell('number', item.time, ...(item.before ? [note(item.before + ' before rewriting')] : [])), share,
      cell('', ...counts, make('span', item.verdict, item.verdict)),
      cell('minor', item.reason ? link(item.reason, '#edit-' + item.reason) : ''),
      cell('minor', item.bound), cell('number minor', item.speed));
    made.firstChild.scope = 'row';
    made.id = item.id;
    return made;
  };

  /* A drawing, or a table of the instructions around a matmul. */
  const side = (title, graph) => {
    const box = make('div', 'side', make('h3', '', title));
    if (typeof graph === 'number') {
      const svg = $('drawing' + graph).content.firstElementChild.cloneNode(true);
      for (const part of [svg, ...svg.querySelectorAll('[id]')]) part.removeAttribute('id');
      for (const name of svg.querySelectorAll('title')) name.remove();
      svg.setAttribute('role', 'img');
      svg.setAttribute('aria-label', title + ' the rewrite');
      box.append(svg);
      return box;
    }
    const list = make('table', 'plain mono');
    for (const [focus, ...texts] of graph) {
      const [name, op, shape, ...operands] = texts.map(text => data.strings[text]);
      list.append(make('tr', focus ? 'here' : '', cell('', name), cell('', op), cell('', shape),
        cell('dim', operands.join(', '))));
    }
    box.append(list);
    return box;
  };

  const detail = m => {
    const inside = cell('inside'), facts = make('table', 'plain');
    inside.colSpan = COLUMNS;
    if (m.reason) {
      const text = make('p', '', m.message);
      if (m.blocker) text.append(', at ', make('code', '', m.blocker));
      if (m.message) text.append('. ');
      text.append('Edit: ' + m.group.hint + ' (', link('more', '#edit-' + m.reason), ').');
      inside.append(text);
    }
    for (let i = 0; i < m.facts.length; i += 2)
      facts.append(make('tr', '', make('th', '', data.strings[m.facts[i]]),
        cell('mono', data.strings[m.facts[i + 1]])));
    inside.append(facts);
    const sides = make('div', 'sides');
    if (m.before_graph) sides.append(side('Before', m.before_graph));
    if (m.after_graph) sides.append(side('After', m.after_graph));
    if (sides.firstChild) inside.append(sides);
    return make('tr', 'detail', inside);
  };

  /* Returns the row of a matmul, followed by its detail if it is open. */
  const matmulRow = m => {
    const title = make('span', '', named('mono', m.name + (m.output ? ' \u2192 ' + m.output : '')),
      note([m.op_name, m.source].filter(Boolean).join(' \u00b7 ')));
    const change = m.change ? [m.change + ': '] : [];
    const made = make('tbody'), first = row(m, title, change, opens => {
      if (opens) first.after(detail(m));
      else first.nextSibling.remove();
    });
    first.className = 'matmul';
    made.append(first);
    if (state.open.has(m.id)) made.append(detail(m));
    const rows = document.createDocumentFragment();
    rows.append(...made.childNodes);
    return rows;
  };

  const groupRow = g => {
    const title = make('span', '', named('', g.layer), note([g.shape, g.source].filter(Boolean).join(' \u00b7 ')));
    const box = make('tbody'), show = opens => {
      while (first.nextSibling) first.nextSibling.remove();  // `first` stays, and has the focus
      if (opens) fill(box, g.shown, matmulRow);
    };
    const count = g.shown.length === g.matmuls.length ? '' + g.count : g.shown.length + ' of ' + g.count;
    const first = row(g, title, [count, ' '], show);
    box.append(first);
    show(state.open.has(g.id));
    return box;
  };

  /* -------------------------------------------------------------------------------- the table */

  const compare = (a, b) => {
    /* The rows of the data are sorted by what the edits of a layer save in all directions. */
    const key = state.sort === 'saving' && a.matmuls ? 'index' : state.sort, sign = key === 'index' ? -1 : 1;
    const x = a[key], y = b[key];
    const order = x === y ? 0 : typeof x === 'string' ? (x < y ? -1 : 1) : sign * (y - x);
    return (state.back ? -order : order) || a.index - b.index;
  };
  const totals = [...table.querySelector('.totals').children], whole = totals.map(c => c.textContent);
  const time = groups.reduce((sum, g) => sum + g.seconds, 0);
  const quantity = seconds => {
    const [unit, size] = [['s', 1], ['ms', 1e-3], ['\u00b5s', 1e-6]].find(u => seconds >= u[1]) ?? ['ns', 1e-9];
    return +(seconds / size).toPrecision(3) + ' ' + unit;
  };
  /* The first row has the sums of the rows that the filters select. */
  const sumUp = (shown, count) => {
    const sum = key => shown.reduce((all, g) => all + g.shown.reduce((part, m) => part + m[key], 0), 0);
    const saving = sum('saving'), seconds = sum('seconds');
    const texts = count === matmuls.length ? whole : ['filtered rows', saving ? quantity(saving) : '-',
      quantity(seconds), time ? (100 * seconds / time).toFixed(1) + ' %' : '', count, '', '', ''];
    totals.forEach((c, i) => { c.textContent = texts[i]; });
  };
  const show = () => {
    const words = state.words.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    const shown = groups.filter(g => {
      const fits = (!state.verdict || g.verdict === state.verdict) &&
        (!state.reason || g.reason === state.reason) && (!state.rows || g.index < +state.rows);
      const rest = words.filter(word => !g.text.includes(word));
      g.shown = fits ? g.matmuls.filter(m => (!state.change || m.change === state.change) &&
        rest.every(word => m.text.includes(word))).sort(compare) : [];
      count += g.shown.length;
      return g.shown.length;
    }).sort(compare);
    for (const body of table.querySelectorAll('tbody')) body.remove();
    sumUp(shown, count);
    seen.disconnect();
    waiting.clear();
    fill(table, shown, groupRow, shown.findIndex(g => state.open.has(g.id)) + 1);
    for (const head of heads) {
      const sorted = head.value === state.sort, text = head.value in {layer: 0, reason: 0, bound: 0};
      head.parentNode.setAttribute('aria-sort',
        !sorted ? 'none' : text === state.back ? 'descending' : 'ascending');
    }
    $('shown').textContent = `${shown.length} of ${groups.length} layers, ${count} of ${matmuls.length} matmuls`;
  };

  /* The dots of the plot: the closest one shows the name of its layer, and opens the layer. */
  const plot = $('roofline');
  const dots = plot ? [...plot.querySelectorAll('.dots')].flatMap(path => {
    const ids = path.dataset.groups.split(' ');
    return path.getAttribute('d').split('M').slice(1).map((text, i) => {
      const [x, y] = text.split(/[ h]/).map(Number);
      return {x, y, group: groups[ids[i]]};
    });
  }) : [];
  const closest = event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM().inverse());
    const far = dot => Math.hypot(dot.x - at.x, dot.y - at.y);
    return dots.reduce((best, dot) => far(dot) < (best ? far(best) : 10) ? dot : best, null)?.group;
  };
  plot?.addEventListener('pointermove', event => {
    const g = closest(event);
    plot.classList.toggle('pointed', g);
    plot.firstElementChild.textContent = g ? `${g.layer}: ${g.time}, ${g.speed}` : '';
  });
  plot?.addEventListener('click', event => {
    const g = closest(event);
    if (g) location.hash = 'open=' + g.id;
  });

  /* Opens and shows the target of a link within the page, which may be a part or a state. */
  const follow = () => {
    const hash = location.hash.slice(1), target = hash && !hash.includes('=') && $(hash);
    if (target) {
      target.open = true;
      target.scrollIntoView();
    } else {
      load();
      show();
      const [first] = state.open;
      if (hash) ($(first) ?? $('layers')).scrollIntoView();
    }
  };

  tools.addEventListener('input', () => {
    for (const name of filters) state[name] = tools.elements[name]?.value ?? '';
    save();
    show();
  });
  tools.addEventListener('reset', () => {
    for (const name of filters) state[name] = '';
    save();
    show();
  });
  tools.addEventListener('submit', event => event.preventDefault());
  for (const head of heads)
    head.addEventListener('click', () => {
      state.back = state.sort === head.value && !state.back;
      state.sort = head.value;
      save();
      show();
    });
  addEventListener('hashchange', follow);
  addEventListener('beforeprint', () => {
    for (const add of [...waiting.values()]) add(Infinity);
  });
  const gone = $('gone');
  if (gone) {
    fill(gone.querySelector('tbody'), read(data.gone), item => make('tr', '',
      cell(item.verdict, item.verdict), cell('', item.name), cell('', item.shape)));
    gone.hidden = false;
  }
  tools.hidden = table.hidden = false;
  load();
  show();
  if (location.hash) follow();
})();
