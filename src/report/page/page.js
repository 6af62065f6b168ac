'use strict';
(() => {
  const root = document.documentElement, articles = [...document.querySelectorAll('article')], links = [...document.querySelectorAll('nav a')];
  const options = location.hash.slice(1).split(',');
  if (options.includes('dark') || options.includes('light')) root.dataset.theme = options.includes('dark') ? 'dark' : 'light';
  document.querySelector('.theme').onclick = () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  };
  // Devices as tabs: without this script they stand one below the other.
  const show = i => {
    articles.forEach((a, k) => a.classList.toggle('here', k === i));
    links.forEach((a, k) => a.classList.toggle('here', k === i));
  };
  if (links.length) {
    document.querySelector('main').classList.add('tabs');
    links.forEach((a, i) => a.onclick = e => { e.preventDefault(); show(i); scrollTo(0, 0); });
    show(Math.max(0, articles.findIndex(a => options.includes(a.id))));
  }
  for (const article of articles) {
    const table = article.querySelector('table.layers'), body = table.tBodies[0];
    const key = (row, i, kind) => kind === 'n' ? +row.cells[i].dataset.v : row.cells[i].textContent.trim();
    table.querySelectorAll('th').forEach((th, i) => th.onclick = () => {
      const kind = th.dataset.s, down = th.classList.contains('down') ? 1 : th.classList.contains('up') ? -1 : kind === 'n' && i ? -1 : 1;
      table.querySelectorAll('th').forEach(t => t.classList.remove('up', 'down'));
      th.classList.add(down > 0 ? 'up' : 'down');
      [...body.rows].sort((a, b) => {
        const x = key(a, i, kind), y = key(b, i, kind);
        return down * (kind === 'n' ? x - y : x.localeCompare(y));
      }).forEach(row => body.append(row));
    });
    // page.html#sort=5,sort=5: as if that heading had been clicked twice.
    for (const option of options) if (option.startsWith('sort=')) table.querySelectorAll('th')[+option.slice(5)]?.click();
    article.querySelector('input').oninput = e => {
      const words = e.target.value.toLowerCase().split(/\s+/);
      for (const row of body.rows) row.hidden = !words.every(w => row.textContent.toLowerCase().includes(w));
    };
    // A dot and its row know each other.
    article.querySelectorAll('.dot').forEach(dot => dot.onclick = () => {
      article.querySelectorAll('.hot').forEach(e => e.classList.remove('hot'));
      const row = body.querySelector(`tr[data-row="${dot.dataset.row}"]`);
      dot.classList.add('hot'); row.classList.add('hot'); row.hidden = false;
      row.scrollIntoView({block: 'center', behavior: 'smooth'});
    });
    body.onclick = e => {
      const row = e.target.closest('tr');
      article.querySelectorAll('.hot').forEach(h => h.classList.remove('hot'));
      row.classList.add('hot');
      article.querySelector(`.dot[data-row="${row.dataset.row}"]`)?.classList.add('hot');
    };
  }
})();
