"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.querySelector("main");
  const form = document.querySelector("#filters form");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const plots = new Map(data.plots.map((plot) => [plot.id, plot]));
  const drawn = new Map(); // element -> the filter it was drawn under

  const chosen = () => Object.fromEntries(new FormData(form));
  const fits = (what, filter) =>
    ["table", "law", "d", "q", "k"].every((key) => !filter[key] || what[key] === undefined ||
      String(what[key]) === filter[key]);

  // ---------------------------------------------------------------- tables
  function filterTables(filter) {
    let shown = 0, all = 0;
    for (const section of main.querySelectorAll("section[data-table]")) {
      let inside = 0;
      for (const table of section.querySelectorAll("table")) {
        let lines = 0;
        for (const line of table.tBodies[0].rows) {
          const hide = !fits({ ...line.dataset, table: section.dataset.table }, filter);
          line.hidden = hide;
          lines += !hide;
          all += 1;
        }
        let columns = 0;
        for (const cell of table.querySelectorAll("[data-learner]")) {
          cell.hidden = Boolean(filter.learner) && cell.dataset.learner !== filter.learner;
          columns += !cell.hidden;
        }
        const here = lines > 0 && columns > 0;
        table.closest(".panel").hidden = !here;
        if (here) { inside += lines; shown += lines; }
      }
      section.hidden = inside === 0;
    }
    document.getElementById("shown").textContent = `${shown} of ${all} lines`;
  }

  function valueOf(line, column, measure) {
    const cell = line.cells[column];
    const text = cell.dataset[measure] ?? cell.dataset.value ?? cell.textContent;
    return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
  }

  function sortBy(button) {
    const head = button.closest("th");
    const table = head.closest("table");
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const measure = main.dataset.measure;
    const lines = [...table.tBodies[0].rows].map((line) => [valueOf(line, head.cellIndex, measure), line]);
    lines.sort(([a], [b]) => a === b ? 0 : a === null ? 1 : b === null ? -1 : down ? b - a : a - b);
    table.tBodies[0].append(...lines.map(([, line]) => line));
  }

  // ---------------------------------------------------------------- plots
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function traces(plot, filter) {
    const visible = (what) => fits(what, filter) && (!filter.learner || what.learner === filter.learner);
    const found = [];
    for (const curve of plot.curves) {
      const points = curve.points.filter((point) => visible({ ...plot, ...point, learner: curve.learner, d: curve.d ?? point.d }));
      if (!points.length) continue;
      const style = data.learners[curve.learner];
      found.push({
        type: "scatter", mode: plot.kind === "ceiling" ? "markers" : "lines+markers",
        name: style.label, x: points.map((p) => p.x), y: points.map((p) => p.y),
        error_y: plot.kind === "ceiling" ? undefined :
          { type: "data", array: points.map((p) => p.se), thickness: 1, width: 3, visible: true },
        text: points.map((p) => p.text), hovertemplate: "%{text}<extra></extra>",
        line: { color: style.colour, width: 1.5, dash: curve.dash }, marker: { color: style.colour, symbol: style.symbol, size: 7,
          line: { color: style.colour, width: 1.5 } },
      });
      const printed = plot.kind === "ceiling" ? [] : points.filter((p) => p.published !== null);
      if (printed.length) {
        found.push({
          type: "scatter", mode: "markers", name: `${style.label}, published`,
          x: printed.map((p) => p.x), y: printed.map((p) => p.published),
          hovertemplate: `${style.label}, published: %{y:.2f} %<extra></extra>`,
          marker: { color: style.colour, symbol: "circle-open", size: 13, line: { width: 1.5 } },
        });
      }
    }
    if (plot.kind === "ceiling" && found.length) {
      found.push({ type: "scatter", mode: "lines", x: plot.diagonal, y: plot.diagonal, hoverinfo: "skip",
        line: { color: colour("--faint"), width: 1, dash: "dot" } });
    }
    return found;
  }

  function layout(plot) {
    const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, automargin: true };
    const x = { ...axis, title: { text: plot.x_title, standoff: 6 } };
    const y = { ...axis, title: { text: plot.y_title, standoff: 6 } };
    if (plot.kind === "ceiling") for (const either of [x, y]) Object.assign(either, { type: "log", dtick: "D2", nticks: 8 });
    else if (plot.ticks) Object.assign(x, { type: "log", tickvals: plot.ticks, ticktext: plot.ticks.map(String) });
    else Object.assign(x, { type: "category", tickangle: 0, tickfont: { size: 11 } });
    return {
      margin: { l: 48, r: 8, t: 8, b: 40 }, showlegend: false, hovermode: "closest", xaxis: x, yaxis: y,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--ink"), size: 12, family: "system-ui, sans-serif" },
    };
  }

  function draw(element) {
    const filter = chosen();
    const key = JSON.stringify([filter, document.documentElement.dataset.theme]);
    if (drawn.get(element) === key) return;
    drawn.set(element, key);
    const plot = plots.get(element.id);
    Plotly.react(element, traces(plot, filter), layout(plot), { responsive: true, displayModeBar: false });
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "300px" });

  const near = (element) => {
    const box = element.getBoundingClientRect();
    return box.height > 0 && box.bottom > -300 && box.top < window.innerHeight + 300;
  };

  function filterPlots(filter) {
    for (const element of main.querySelectorAll(".plot")) {
      const empty = traces(plots.get(element.id), filter).length === 0;
      element.closest("figure").hidden = empty;
      if (!empty && near(element)) draw(element);
    }
    for (const grid of main.querySelectorAll(".plots")) grid.hidden = !grid.querySelector("figure:not([hidden])");
    for (const item of main.querySelectorAll(".legend [data-learner]")) {
      item.hidden = Boolean(filter.learner) && item.dataset.learner !== filter.learner;
    }
  }

  function apply() {
    const filter = chosen();
    main.dataset.measure = filter.measure;
    filterTables(filter);
    filterPlots(filter);
  }

  function theme(name) {
    document.documentElement.dataset.theme = name;
    document.getElementById("theme").textContent = name === "dark" ? "Light theme" : "Dark theme";
    for (const element of main.querySelectorAll(".plot")) if (near(element)) draw(element);
  }

  let silence;
  function say(text) {
    const place = document.getElementById("said");
    place.textContent = text;
    clearTimeout(silence);
    silence = setTimeout(() => { place.textContent = ""; }, 8000);
  }

  // ---------------------------------------------------------------- what a reader does
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  document.getElementById("theme").addEventListener("click", () =>
    theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
  main.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.closest("thead")) sortBy(button);
    if (button.dataset.command) {
      const told = () => say(`Copied: ${button.dataset.command}`);
      if (navigator.clipboard) navigator.clipboard.writeText(button.dataset.command).then(told, () => say(button.dataset.command));
      else say(button.dataset.command);
    }
  });
  window.addEventListener("beforeprint", () => {
    theme("light");
    for (const element of main.querySelectorAll(".plot")) if (!element.closest("[hidden]")) draw(element);
  });
  window.addEventListener("afterprint", () => theme(dark.matches ? "dark" : "light"));

  theme(dark.matches ? "dark" : "light");
  form.hidden = false;
  apply();
  for (const element of main.querySelectorAll(".plot")) watcher.observe(element);
  document.documentElement.dataset.ready = "true";
})();
