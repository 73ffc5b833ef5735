// Draws the charts of a report from the JSON in #data. The tables of the page show the same without this script.
(() => {
  "use strict";

  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const COMPARED = data.runs.length > 1;
  const END = Math.max(data.seconds, 1);
  const DAY = 86400;
  const SPANS_DAYS = Math.floor(data.start / DAY) !== Math.floor((data.start + END - 0.001) / DAY);
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const DAYS = "Sun Mon Tue Wed Thu Fri Sat".split(" ");
  // As in page.css: runs differ by line style first, by colour second.
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 2], [14, 4, 2, 4, 2, 4]];
  const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', sans-serif";
  const NEAR = 7; // pixels from which a mark is felt
  const PRINT_WIDTH = 680;

  const charts = []; // every uPlot, in the order of the page
  const marks = new Map(); // "workload.run.autoscaler.change" -> how to show that change
  const table = new Map([...document.querySelectorAll("tr[data-change]")].map((row) => [row.dataset.change, row]));
  let color = {};

  // ---- Words ----

  const two = (n) => String(n).padStart(2, "0");

  /** Time of day in UTC, with the date where the page spans several days. */
  function clock(seconds) {
    const d = new Date(Math.round((data.start + seconds) * 1000));
    const milli = d.getUTCMilliseconds();
    const time = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())}`;
    const date = SPANS_DAYS ? `${DAYS[d.getUTCDay()]} ${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]} ` : "";
    return date + time + (milli ? "." + String(milli).padStart(3, "0") : "");
  }

  function length(seconds) {
    const s = Math.round(seconds);
    const pair = (a, x, b, y) => (b ? `${a} ${x} ${b} ${y}` : `${a} ${x}`);
    if (s < 120) return `${s} s`;
    if (s < 3600) return pair(Math.floor(s / 60), "min", s % 60, "s");
    if (s < DAY) return pair(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
    return pair(Math.floor(s / DAY), "d", Math.floor((s % DAY) / 3600), "h");
  }

  function number(value) {
    const size = Math.abs(value);
    const digits = size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.0995 ? 2 : 4;
    return value.toLocaleString("en-US", { maximumFractionDigits: digits });
  }

  /** A number with its unit. */
  function amount(value, unit) {
    if (value == null) return "missing";
    if (unit === "percent") return `${number(value)} %`;
    if (unit === "cores" && value !== 0 && Math.abs(value) < 10) return `${number(value * 1000)}m`;
    if (unit === "bytes") {
      const step = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"]].find(([size]) => Math.abs(value) >= size);
      if (step) return number(value / step[0]) + step[1];
    }
    return number(value);
  }

  // ---- Small helpers ----

  /** An element; text is always text, never HTML. */
  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text != null) element.textContent = text;
    return element;
  }

  function swatch(style) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", `swatch ${style}`);
    svg.setAttribute("viewBox", "0 0 28 8");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(svg.namespaceURI, "path");
    path.setAttribute("d", "M0 4H28");
    svg.append(path);
    return svg;
  }

  function readColors() {
    const style = getComputedStyle(root);
    const names = "paper ink dim faint rule area band alarm warn run0 run1 run2 run3 run4 run5".split(" ");
    color = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  /** Stripes, so that what is lost is seen without colour too. */
  function stripes(ctx) {
    const size = 6 * uPlot.pxRatio;
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const pen = tile.getContext("2d");
    pen.strokeStyle = color.alarm;
    pen.lineWidth = 1.3 * uPlot.pxRatio;
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift, size);
      pen.lineTo(shift + size, 0);
    }
    pen.stroke();
    return ctx.createPattern(tile, "repeat");
  }

  /** Series on one time axis: each value holds until the next of its series; null where none is known. */
  function align(all) {
    const times = new Set([0, END]);
    for (const { at, values } of all) {
      at.forEach((time, i) => {
        times.add(time);
        // A line that ends in a gap must reach it.
        if (i > 0 && values[i] == null && values[i - 1] != null) times.add(time - 0.001);
      });
    }
    const sorted = [...times].filter((time) => time >= 0 && time <= END).sort((a, b) => a - b);
    const columns = all.map(({ at, values }) => {
      let row = -1;
      return sorted.map((time) => {
        while (row + 1 < at.length && at[row + 1] <= time) row += 1;
        return row < 0 ? null : values[row];
      });
    });
    return [sorted.map((time) => data.start + time), ...columns];
  }

  /** The row in force at `x`. */
  function rowAt(xs, x) {
    let low = 0;
    let high = xs.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (xs[middle] <= x) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // ---- One chart ----

  const dots = (dash) => dash.map((d) => d * uPlot.pxRatio);
  const STYLES = {
    ink: () => ({ stroke: () => color.ink, width: 1.5 }),
    dashed: () => ({ stroke: () => color.ink, width: 1.5, dash: dots([5, 3]) }),
    area: () => ({ stroke: () => color.faint, width: 1, fill: () => color.area }),
    none: () => ({ stroke: () => "transparent", width: 0 }),
  };
  DASHES.forEach((dash, i) => {
    STYLES[`run${i}`] = () => ({ stroke: () => color[`run${i}`], width: 1.75, dash: dots(dash) });
  });
  const runStyle = (index) => `run${index % DASHES.length}`;

  function timeLabels(_, splits, axis, space, step) {
    return splits.map((split) => {
      const d = new Date(split * 1000);
      const time = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
      if (step >= DAY || (SPANS_DAYS && time === "00:00" && step >= 60)) return `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`;
      return step >= 60 ? time : `${time}:${two(d.getUTCSeconds())}`;
    });
  }

  const narrow = () => !root.hasAttribute("data-print") && root.clientWidth <= 720;
  const axisWidth = () => (narrow() ? 62 : 70);
  const plotWidth = (parent) => (root.hasAttribute("data-print") ? PRINT_WIDTH : Math.max(parent.clientWidth, 240));

  /** From zero to a bit above the data and above the lines near it. */
  function yRange(lines) {
    return (_, low, high) => {
      const top = Math.max(high ?? 0, 0);
      const near = lines.map((line) => line.value).filter((value) => value <= 2.5 * top || top === 0);
      return [Math.min(low ?? 0, 0), Math.max(top, ...near) * 1.12 || 1];
    };
  }

  function axisStyle(extra) {
    const line = { stroke: () => color.rule, width: 1 };
    return { stroke: () => color.dim, font: FONT, grid: line, ticks: { ...line, size: 4 }, gap: 4, ...extra };
  }

  /** A horizontal line, such as a target. */
  function drawLine(u, { value, tint = "dim", dash = [2, 3] }) {
    const { min, max } = u.scales.y;
    if (value > max || value < min) return;
    const { ctx, bbox } = u;
    const y = Math.round(u.valToPos(value, "y", true));
    ctx.save();
    ctx.strokeStyle = color[tint];
    ctx.lineWidth = 1.25 * uPlot.pxRatio;
    ctx.setLineDash(dots(dash));
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }

  function caption(figure, title, keys, hint) {
    const element = make("figcaption");
    element.append(make("span", "title", title));
    const values = keys.map(({ style, label }) => {
      const key = make("span", "key");
      const value = make("span", "value");
      key.append(swatch(style), label, value);
      element.append(key);
      return value;
    });
    if (hint) element.append(make("span", "", hint));
    const all = make("button", "", "show all");
    all.type = "button";
    all.hidden = true;
    all.addEventListener("click", showAll);
    const time = make("span", "time off", clock(0)); // takes its room from the begin, so that nothing moves
    element.append(all, time);
    figure.append(element);
    return { values, time, all };
  }

  /**
   * Adds a figure: `series` of {label, style, rows, unit}, horizontal `lines`, more keys for the legend, and functions that
   * draw `under` and `over` the series.
   */
  function addChart(parent, { title, label, hint, height, series, lines = [], keys = [], bands = [], under, over, y = {}, scale, onCursor }) {
    const figure = make("figure");
    const shown = series.filter((s) => s.label);
    const { values, time, all } = caption(figure, title, [...shown, ...keys], hint);
    const plot = make("div", "plot");
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `${label || title}. The tables below show the same.`);
    figure.append(plot);
    parent.append(figure);

    const readCursor = (u) => {
      const { left } = u.cursor;
      const inside = left != null && left >= 0;
      const x = inside ? u.posToVal(left, "x") : 0;
      const row = rowAt(u.data[0], x);
      shown.forEach((s, i) => {
        const value = u.data[series.indexOf(s) + 1][row];
        values[i].textContent = inside ? amount(value, s.unit) : "";
      });
      // A key with rows has values of its own, which no line shows.
      keys.forEach(({ rows, unit }, i) => {
        if (!rows) return;
        const value = rows.values[rowAt(rows.at, x - data.start)];
        values[shown.length + i].textContent = inside ? amount(value, unit) : "";
      });
      time.textContent = clock(inside ? Math.round(x - data.start) : 0);
      time.classList.toggle("off", !inside);
      onCursor?.(u, inside ? x - data.start : null);
    };
    const options = {
      width: plotWidth(parent),
      height,
      legend: { show: false },
      padding: [6, 26, 0, 0],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, dist: 4 },
        sync: { key: "time", setSeries: false, scales: ["x", null] },
      },
      scales: { x: { time: true }, y: { range: scale || yRange(lines) } },
      series: [{}, ...series.map((s) => ({ ...STYLES[s.style](), paths: uPlot.paths.stepped({ align: 1, alignGaps: 1 }), points: { show: false }, spanGaps: false }))],
      bands,
      axes: [
        axisStyle({ space: 72, size: 24, values: timeLabels }),
        axisStyle({ size: axisWidth, space: 26, values: (_, splits) => splits.map((v) => amount(v, series[0]?.unit)), ...y }),
      ],
      hooks: {
        drawClear: under ? [under] : [],
        draw: [(u) => { lines.forEach((line) => drawLine(u, line)); over?.(u); }],
        setCursor: [readCursor],
        setScale: [(u, key) => {
          if (key === "x") all.hidden = u.scales.x.min <= data.start && u.scales.x.max >= data.start + END;
        }],
      },
    };
    const u = new uPlot(options, align(series.map((s) => s.rows)), plot);
    charts.push({ u, parent, height });
    return { u, plot, figure };
  }

  function showAll() {
    for (const { u } of charts) u.setScale("x", { min: data.start, max: data.start + END });
  }

  // ---- The tip ----

  const tip = make("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);

  function hideTip() {
    tip.hidden = true;
    document.querySelectorAll("tr.on").forEach((row) => row.classList.remove("on"));
  }

  /** The table holds the reasons. */
  const whyOf = (key) => table.get(key)?.querySelector(".why").textContent ?? "Too many changes to list the reason of this one.";

  /** Shows what `found` says beside a point of a chart: changes with their reasons, or limits. */
  function showTip(u, seconds, found) {
    tip.replaceChildren();
    hideTip();
    for (const { change, span, key, name } of found) {
      if (change) {
        const line = make("p");
        line.append(make("span", "step", `${change.from} → ${change.to}`));
        if (change.wanted != null) line.append(` (wanted ${change.wanted})`);
        tip.append(make("p", "at", [clock(change.at), name].filter(Boolean).join(" · ")), line, make("p", "", whyOf(key)));
        if (change.limit) tip.append(make("p", "limit", `limit: ${change.limit.label}`));
        table.get(key)?.classList.add("on");
      } else {
        const when = `${clock(span.from)} – ${clock(span.to)} (${length(span.to - span.from)})`;
        const line = make("p");
        line.append(make("b", "", span.limit.label), `: ${span.limit.meaning}, ${span.decisions === 1 ? "once" : `${span.decisions} times`}.`);
        tip.append(make("p", "at", [when, name].filter(Boolean).join(" · ")), line);
        if (span.why) tip.append(make("p", "limit", span.why));
      }
    }
    const box = u.over.getBoundingClientRect();
    const left = box.left + u.valToPos(data.start + seconds, "x");
    tip.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = tip;
    const x = left + 14 + width > root.clientWidth - 8 ? left - width - 14 : left + 14;
    const above = box.top + 8 + height > innerHeight ? box.bottom - height : box.top + 8;
    tip.style.left = `${scrollX + Math.max(8, Math.min(x, root.clientWidth - width - 8))}px`;
    tip.style.top = `${scrollY + Math.max(8, above)}px`;
  }

  /** The changes of `events` nearest to `seconds`, or else the limits in force then. */
  function findEvents(u, seconds, events) {
    const x = u.valToPos(data.start + seconds, "x");
    const distance = (event) => Math.abs(u.valToPos(data.start + event.change.at, "x") - x);
    const nearest = events.filter((e) => e.change).reduce((best, e) => (!best || distance(e) < distance(best) ? e : best), null);
    if (nearest && distance(nearest) <= NEAR) return events.filter((e) => e.change && e.change.at === nearest.change.at).slice(0, 6);
    return events.filter((e) => e.span && e.span.from <= seconds && seconds < e.span.to).slice(0, 6);
  }

  /** Shows the events under the pointer; `pick` narrows them down by height. */
  function tellOnHover(chart, events, pick = () => events) {
    const { over } = chart.u;
    let inside = false;
    over.addEventListener("mouseenter", () => { inside = true; });
    over.addEventListener("mouseleave", () => { inside = false; hideTip(); });
    return (u, seconds) => {
      if (!inside || seconds == null) return;
      const found = findEvents(u, seconds, pick(u));
      if (found.length) showTip(u, found[0].change?.at ?? seconds, found);
      else hideTip();
    };
  }

  // ---- Marks and lanes ----

  /** A triangle that points the way the count went. */
  function triangle(ctx, x, y, up, size) {
    const tall = up ? -size : size;
    ctx.beginPath();
    ctx.moveTo(x - size, y);
    ctx.lineTo(x + size, y);
    ctx.lineTo(x, y + 1.6 * tall);
    ctx.closePath();
  }

  /** Triangles at the changes: full for more, hollow for fewer; left out where they would cover each other. */
  function drawMarks(u, events) {
    const ratio = uPlot.pxRatio;
    const { ctx, bbox } = u;
    const { min, max } = u.scales.x;
    const seen = events.filter((e) => e.change && data.start + e.change.at >= min && data.start + e.change.at <= max);
    if (seen.length * 9 * ratio > bbox.width) return;
    const named = seen.length * 40 * ratio <= bbox.width;
    ctx.save();
    ctx.setLineDash([]);
    ctx.font = FONT.replace("11", 11 * ratio);
    let last = null; // the last number written, so that none is written over another
    for (const { change } of seen) {
      const x = u.valToPos(data.start + change.at, "x", true);
      const y = u.valToPos(change.to, "y", true);
      const up = change.to > change.from;
      ctx.strokeStyle = color.ink;
      ctx.fillStyle = up ? color.ink : color.paper;
      ctx.lineWidth = 1.25 * ratio;
      triangle(ctx, x, up ? y + 3 * ratio : y - 3 * ratio, up, 4.5 * ratio);
      ctx.fill();
      ctx.stroke();
      if (named && !(last && x - last.x < 24 * ratio && Math.abs(y - last.y) < 12 * ratio)) {
        last = { x, y };
        ctx.fillStyle = color.ink;
        ctx.textAlign = up ? "right" : "left";
        ctx.fillText(String(change.to), x + (up ? -8 : 8) * ratio, y - (up ? 1 : 4) * ratio);
      }
    }
    ctx.restore();
  }

  /** One row of marks and bars per lane. */
  function drawLanes(u, lanes) {
    const ratio = uPlot.pxRatio;
    const { ctx, bbox } = u;
    const right = bbox.left + bbox.width;
    const place = (seconds) => u.valToPos(data.start + seconds, "x", true);
    ctx.save();
    // The line style of a run is its name.
    lanes.forEach(({ style }, i) => {
      if (!style) return;
      const y = u.valToPos(lanes.length - i - 0.5, "y", true);
      ctx.strokeStyle = color[style];
      ctx.lineWidth = 2 * ratio;
      ctx.setLineDash(dots(DASHES[Number(style.slice(3))]));
      ctx.beginPath();
      ctx.moveTo(bbox.left - 42 * ratio, y);
      ctx.lineTo(bbox.left - 8 * ratio, y);
      ctx.stroke();
    });
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    lanes.forEach((lane, i) => {
      const middle = Math.round(u.valToPos(lanes.length - i - 0.5, "y", true));
      for (const { span, change, run } of lane.events) {
        if (span) {
          const from = place(span.from);
          const to = place(span.to);
          if (to < bbox.left || from > right) continue;
          ctx.fillStyle = span.limit.id === "metric" || span.limit.id === "target" ? color.warn : color.faint;
          ctx.globalAlpha = 0.75;
          ctx.fillRect(from, middle - 4 * ratio, Math.max(to - from, ratio), 8 * ratio);
          ctx.globalAlpha = 1;
        } else {
          const x = place(change.at);
          const up = change.to > change.from;
          ctx.fillStyle = color[COMPARED ? runStyle(run) : "ink"];
          ctx.fillRect(Math.round(x - ratio / 2), up ? middle - 7 * ratio : middle, Math.max(1, Math.round(1.5 * ratio)), 7 * ratio);
        }
      }
    });
    ctx.restore();
  }

  function addLanes(parent, lanes) {
    const events = lanes.flatMap((lane) => lane.events);
    let tell;
    const chart = addChart(parent, {
      title: "changes and limits",
      hint: COMPARED ? "bars: limited; marks above: up, below: down" : "marks above: up, below: down",
      keys: COMPARED ? lanes.map((lane) => ({ style: lane.style, label: lane.label })) : [],
      label: `When ${lanes.map((lane) => lane.label).join(", ")} applied`,
      height: 34 + 18 * lanes.length,
      series: [{ style: "none", rows: { at: [0], values: [0] } }],
      scale: () => [0, lanes.length],
      y: {
        splits: () => lanes.map((_, i) => i + 0.5),
        values: () => lanes.map((_, i) => (COMPARED ? "" : lanes[lanes.length - 1 - i].label)),
        grid: { show: false },
        ticks: { show: false },
      },
      over: (u) => drawLanes(u, lanes),
      onCursor: (u, seconds) => tell?.(u, seconds),
    });
    tell = tellOnHover(chart, events, (u) => {
      const lane = Math.floor(u.cursor.top / (u.over.clientHeight / lanes.length));
      return lanes[Math.max(0, Math.min(lane, lanes.length - 1))].events;
    });
  }

  /** Arrow keys go from change to change. */
  function addKeys({ u, plot }, name, events) {
    const changes = events.filter((e) => e.change).sort((a, b) => a.change.at - b.change.at);
    if (!changes.length) return;
    let current = 0;
    plot.tabIndex = 0;
    plot.setAttribute("role", "slider");
    plot.setAttribute("aria-label", `Changes of the replicas of ${name}; arrow keys go from one to the next`);
    plot.setAttribute("aria-valuemin", "1");
    plot.setAttribute("aria-valuemax", String(changes.length));
    const go = (index, show = true) => {
      current = Math.max(0, Math.min(index, changes.length - 1));
      const { change, name: who, key } = changes[current];
      const limit = change.limit ? `; limit: ${change.limit.label}` : "";
      plot.setAttribute("aria-valuenow", String(current + 1));
      plot.setAttribute("aria-valuetext", `${who ? `${who}, ` : ""}${clock(change.at)}: from ${change.from} to ${change.to}: ${whyOf(key)}${limit}`);
      if (!show) return;
      const x = data.start + change.at;
      if (x < u.scales.x.min || x > u.scales.x.max) showAll();
      u.setCursor({ left: u.valToPos(x, "x"), top: 10 }, true, true);
      showTip(u, change.at, [changes[current]]);
    };
    go(0, false);
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, Home: -Infinity, End: Infinity };
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hideTip();
      if (event.key === "Enter") table.get(changes[current].key)?.querySelector("a").focus();
      if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      go(tip.hidden ? current : current + moves[event.key]);
    });
    plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) go(current); });
    plot.addEventListener("blur", hideTip);
    changes.forEach((event, index) => marks.set(event.key, () => {
      plot.focus({ preventScroll: true });
      plot.scrollIntoView({ block: "center" });
      go(index);
    }));
  }

  // ---- The charts of one workload ----

  const changesOf = ({ changes: { at, from, to, wanted, limit } }) =>
    at.map((time, i) => ({ at: time, from: from[i], to: to[i], wanted: wanted[i], limit: data.limits[limit[i]] }));
  const spansOf = ({ limits: { from, to, limit, decisions, why } }) =>
    from.map((time, i) => ({ from: time, to: to[i], limit: data.limits[limit[i]], decisions: decisions[i], why: why[i] }));
  const rowsOf = (load, values) => ({ at: load.at, values });
  const some = (values) => values.some((value) => value > 0);

  function addLoad(parent, tracks) {
    const loads = tracks.map((track) => track.load);
    const first = loads.find((load) => load && load.at.length);
    if (!first) return;
    const unit = "plain";
    const offered = { label: "offered", style: "ink", unit, rows: rowsOf(first, first.offered) };
    if (COMPARED) {
      addChart(parent, { title: "load, per second", height: 130, series: [offered] });
      const perRun = (title, pick) => {
        if (!loads.some((load) => load && some(pick(load)))) return;
        const series = loads.flatMap((load, i) => (load ? [{ label: data.runs[i], style: runStyle(i), unit, rows: rowsOf(load, pick(load)) }] : []));
        addChart(parent, { title, height: 110, series });
      };
      perRun("unserved, per second", (load) => load.unserved);
      perRun("waiting", (load) => load.backlog);
      return;
    }
    const served = { label: "served", style: "area", unit, rows: rowsOf(first, first.served) };
    const kept = { style: "none", rows: rowsOf(first, first.offered.map((value, i) => Math.max(0, value - first.unserved[i]))) };
    const lost = some(first.unserved);
    addChart(parent, {
      title: "load, per second",
      height: 150,
      series: [served, offered, kept],
      bands: lost ? [{ series: [2, 3], fill: (u) => stripes(u.ctx) }] : [],
      keys: lost ? [{ style: "hatch", label: "unserved", unit, rows: rowsOf(first, first.unserved) }] : [],
    });
    if (some(first.backlog)) {
      addChart(parent, { title: "waiting", height: 90, series: [{ label: "units of work", style: "area", unit, rows: rowsOf(first, first.backlog) }] });
    }
  }

  function addMetrics(parent, tracks) {
    const all = tracks.flatMap((track, run) => track.autoscalers.flatMap((autoscaler) =>
      autoscaler.metrics.map((metric) => ({ metric, run, whose: autoscaler.name }))));
    // A metric in another unit is another metric.
    const ids = new Set(all.map(({ metric }) => `${metric.unit} ${metric.name}`));
    for (const id of ids) {
      const same = all.filter(({ metric }) => `${metric.unit} ${metric.name}` === id)
        .map((one, i) => ({ ...one, style: runStyle(COMPARED ? one.run : i) }));
      const { name, unit } = same[0].metric;
      const targets = [...new Set(same.map(({ metric }) => metric.target).filter((target) => target != null))];
      const differ = targets.length > 1;
      const lines = same.filter(({ metric }) => metric.target != null).slice(0, differ ? same.length : 1)
        .map(({ metric, style }) => ({ value: metric.target, tint: differ ? style : "dim" }));
      const names = same.map(({ run, whose }) => (COMPARED ? data.runs[run] : same.length > 1 ? whose : "measured"));
      const series = same.map((one, i) => ({
        label: names[i] + (differ && one.metric.target != null ? ` (target ${amount(one.metric.target, unit)})` : ""),
        style: same.length > 1 ? one.style : "ink",
        unit,
        rows: one.metric.series,
      }));
      const gaps = series.some((s) => s.rows.values.some((value) => value == null));
      addChart(parent, {
        title: name,
        label: `${name} against its target${gaps ? "; there are gaps where it was missing" : ""}`,
        height: COMPARED ? 140 : 120,
        series,
        lines,
        keys: targets.length === 1 ? [{ style: "target", label: `target ${amount(targets[0], unit)}` }] : [],
        y: unit === "bytes" ? { incrs: Array.from({ length: 50 }, (_, power) => 2 ** power) } : {},
        under: gaps ? (u) => drawGaps(u, series) : undefined,
      });
    }
  }

  /** Where a metric was missing is said, not left blank. */
  function drawGaps(u, series) {
    const ratio = uPlot.pxRatio;
    const { ctx, bbox } = u;
    ctx.save();
    ctx.font = FONT.replace("11", 11 * ratio);
    ctx.textAlign = "center";
    for (const { rows } of series) {
      rows.values.forEach((value, i) => {
        if (value != null) return;
        const left = Math.max(u.valToPos(data.start + rows.at[i], "x", true), bbox.left);
        const right = Math.min(u.valToPos(data.start + (rows.at[i + 1] ?? END), "x", true), bbox.left + bbox.width);
        if (right <= left) return;
        ctx.globalAlpha = 0.14;
        ctx.fillStyle = color.warn;
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
        ctx.globalAlpha = 1;
        if (right - left > ctx.measureText(" missing ").width) ctx.fillText("missing", (left + right) / 2, bbox.top + 14 * ratio);
      });
    }
    ctx.restore();
  }

  function addReplicas(parent, workload, w) {
    const { tracks, name } = workload;
    const autoscalers = tracks.flatMap((track, run) => track.autoscalers.map((autoscaler, a) => ({ autoscaler, run, a })));
    const several = !COMPARED && autoscalers.length > 1;
    const eventsOf = ({ autoscaler, run, a }) => {
      const whose = COMPARED ? data.runs[run] : several ? autoscaler.name : "";
      return [
        ...spansOf(autoscaler).map((span) => ({ span, run, name: whose })),
        ...changesOf(autoscaler).map((change, c) => ({ change, run, name: whose, dryRun: autoscaler.dryRun, key: `${w}.${run}.${a}.${c}` })),
      ];
    };
    const events = autoscalers.flatMap(eventsOf);
    const unit = "plain";
    const ready = tracks.map((track, run) => ({
      label: COMPARED ? data.runs[run] : "ready",
      style: COMPARED ? runStyle(run) : "area",
      unit,
      rows: track.ready,
    }));
    const desired = COMPARED ? [] : autoscalers.map(({ autoscaler, a }) => ({
      label: (several ? `desired by ${autoscaler.name}` : "desired") + (autoscaler.dryRun ? " (dry run)" : ""),
      style: a === 0 ? "dashed" : runStyle(a + 1),
      unit,
      rows: autoscaler.desired,
    }));
    const bounds = new Map(autoscalers.map(({ autoscaler: { min, max } }) => [`${min} ${max}`, { min, max }]));
    const band = bounds.size === 1 ? [...bounds.values()][0] : null;
    const lines = band ? [{ value: band.max, dash: [1, 3] }, { value: band.min, dash: [1, 3] }] : [];
    let tell;
    const chart = addChart(parent, {
      title: COMPARED ? "ready replicas" : "replicas",
      label: `Replicas of ${name}`,
      height: 220,
      series: [...ready, ...desired],
      lines,
      keys: band ? [{ style: "bounds", label: `min ${band.min}, max ${band.max}` }] : [],
      y: { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7, 1e8, 1e9] },
      under: band ? (u) => drawBand(u, band) : undefined,
      // Where runs are compared, their lanes show the marks.
      over: COMPARED ? undefined : (u) => drawMarks(u, events.filter((e) => !e.dryRun)),
      onCursor: (u, seconds) => tell?.(u, seconds),
    });
    tell = tellOnHover(chart, events);
    addKeys(chart, name, events);
    if (events.length) addLanes(parent, lanesOf(autoscalers, eventsOf));
  }

  /** One lane per run where runs are compared, else one for changes and one for each limit. */
  function lanesOf(autoscalers, eventsOf) {
    const made = (e) => !e.change || !e.dryRun;
    if (COMPARED) return autoscalers.map((one) => ({ label: data.runs[one.run], style: runStyle(one.run), events: eventsOf(one).filter(made) }));
    const events = autoscalers.flatMap(eventsOf);
    const limits = data.limits.map(({ id, label }) => ({ label, events: events.filter((e) => e.span?.limit.id === id) }));
    // What a dry run would have changed is no change.
    const changes = { label: "changes", events: events.filter((e) => e.change && !e.dryRun) };
    const dryRun = { label: "dry run", events: events.filter((e) => e.change && e.dryRun) };
    return [changes, dryRun, ...limits].filter((lane) => lane.events.length);
  }

  /** The counts that the bounds allow. */
  function drawBand(u, { min, max }) {
    const { ctx, bbox } = u;
    const top = u.valToPos(Math.min(max, u.scales.y.max), "y", true);
    const bottom = u.valToPos(Math.max(min, u.scales.y.min), "y", true);
    ctx.save();
    ctx.fillStyle = color.band;
    ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
    ctx.restore();
  }

  // ---- The page ----

  root.classList.add("js");
  readColors();
  data.workloads.forEach((workload, w) => {
    const parent = document.querySelector(`[data-workload="${w}"]`);
    addLoad(parent, workload.tracks);
    addMetrics(parent, workload.tracks);
    addReplicas(parent, workload, w);
  });

  function resize() {
    for (const { u, parent, height } of charts) {
      const width = plotWidth(parent);
      if (u.width !== width) u.setSize({ width, height });
    }
  }

  function recolor() {
    readColors();
    for (const { u } of charts) u.redraw(true, true);
  }

  new ResizeObserver(resize).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);

  // Paper is white and narrow, and what is folded away on a screen is part of the print.
  addEventListener("beforeprint", () => {
    root.dataset.print = "";
    document.querySelectorAll("details.print:not([open])").forEach((details) => {
      details.open = true;
      details.dataset.folded = "";
    });
    hideTip();
    resize();
    recolor();
  });
  addEventListener("afterprint", () => {
    delete root.dataset.print;
    document.querySelectorAll("details[data-folded]").forEach((details) => {
      details.open = false;
      delete details.dataset.folded;
    });
    resize();
    recolor();
  });

  // A change in the table leads to its mark.
  document.querySelector(".changes")?.addEventListener("click", (event) => {
    const show = event.target.closest("a") && marks.get(event.target.closest("tr").dataset.change);
    if (!show) return;
    event.preventDefault();
    show();
  });
})();
