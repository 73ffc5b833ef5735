// The charts of one autoscaler: replicas above, metrics below, on one time axis.

import uPlot from "uplot";
import { clock, h, number } from "./dom.js";
import { withGaps } from "./gaps.js";
import type { History, Mark } from "./model.js";

const UTC = (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
const LINES = ["--line1", "--line2", "--line3", "--line4", "--line5"];

export interface Chart {
  element: HTMLElement;
  update(history: History): void;
  choose(mark: Mark | null): void;
  close(): void;
}

/** A colour of the style sheet. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export const axis = (more: uPlot.Axis = {}): uPlot.Axis => ({
  stroke: colour("--dim"),
  grid: { stroke: colour("--rule"), width: 1 },
  ticks: { stroke: colour("--rule"), width: 1, size: 4 },
  font: "11px ui-monospace, monospace",
  ...more,
});

/** A metric at more than three times its target is cut off: one peak must not make the rest flat. */
const MAX_RATIO = 300;
const DAY_SECONDS = 86_400;
const day = (t: number) => new Date(t * 1000).toISOString().slice(5, 10);

export const timeAxis = (): uPlot.Axis =>
  axis({
    values: (_, splits) => {
      const step = (splits[1] ?? 0) - (splits[0] ?? 0);
      // A range of days shows the date at midnight.
      const isLong = (splits.at(-1) ?? 0) - (splits[0] ?? 0) > DAY_SECONDS / 2;
      return splits.map((t) => (isLong && t % DAY_SECONDS === 0 ? day(t) : clock(t).slice(0, step > 0 && step < 60 ? 8 : 5)));
    },
    space: 70,
    size: 28,
  });

export const stepped = () => uPlot.paths.stepped!({ align: 1 });

export function chart(onMark: (mark: Mark) => void): Chart {
  const element = document.createElement("div");
  element.className = "charts";
  const above = document.createElement("div");
  const below = document.createElement("div");
  const swatch = (kind: string, text: string) => h("span", { class: `shade ${kind}`, hidden: true }, text);
  const shades = { window: swatch("window", "held by a stabilization window"), rate: swatch("rate", "held by a scaling policy") };
  element.append(above, h("p", { class: "shades" }, shades.window, shades.rate), below);
  let plots: uPlot[] = [];
  let history: History | null = null;
  let chosen: Mark | null = null;
  let shape = "";

  const width = () => Math.max(280, element.clientWidth);
  const marks = () => history?.marks ?? [];

  /** Shades the time in which a window or a rate limit held the count back, and draws decisions. */
  const shade: uPlot.Plugin = {
    hooks: {
      drawClear: (plot) => {
        const { ctx, bbox } = plot;
        const points = history?.points ?? [];
        points.forEach((point, index) => {
          if (point.held !== "window" && point.held !== "rate") return;
          const until = points[index + 1]?.t ?? point.t + 15;
          const left = Math.max(bbox.left, plot.valToPos(point.t, "x", true));
          const right = Math.min(bbox.left + bbox.width, plot.valToPos(until, "x", true));
          if (right <= left) return;
          ctx.fillStyle = colour(point.held === "window" ? "--window" : "--rate");
          ctx.fillRect(left, bbox.top, right - left, bbox.height);
        });
      },
      draw: (plot) => {
        const { ctx, bbox } = plot;
        const ratio = devicePixelRatio || 1;
        for (const mark of marks()) {
          const x = plot.valToPos(mark.t, "x", true);
          if (x < bbox.left || x > bbox.left + bbox.width) continue;
          if (mark === chosen) {
            ctx.fillStyle = colour("--mark");
            ctx.fillRect(x - ratio / 2, bbox.top, ratio, bbox.height);
          }
          if (!mark.changed && !mark.failed && mark !== chosen) continue;
          ctx.fillStyle = colour(mark.failed ? "--bad" : mark === chosen ? "--mark" : "--text");
          ctx.beginPath();
          // Without a count there is no height: the mark is at the top, not at zero.
          const y = mark.to === null ? bbox.top : plot.valToPos(mark.to, "y", true);
          ctx.arc(x, y, (mark === chosen ? 5 : 3.5) * ratio, 0, Math.PI * 2);
          ctx.fill();
        }
      },
    },
  };

  function nearest(t: number): Mark | null {
    let found: Mark | null = null;
    for (const mark of marks()) if (mark.t <= t && (!found || mark.t >= found.t)) found = mark;
    return found ?? marks()[0] ?? null;
  }

  const cursor: uPlot.Cursor = {
    sync: { key: "autoscaler" },
    y: false,
    drag: { x: true, y: false, setScale: true },
    points: { size: 6 },
  };

  const follow = (plot: uPlot) => {
    const index = plot.cursor.idx;
    const t = index === null || index === undefined ? undefined : plot.data[0]?.[index];
    if (t === undefined || !plot.over.matches(":hover")) return;
    const mark = nearest(t);
    if (mark && mark !== chosen) onMark(mark);
  };

  function build(): void {
    plots.forEach((plot) => plot.destroy());
    if (!history) return;
    const text = colour("--text");
    const whole = (_: uPlot, value: number | null) => (value === null ? "–" : String(value));
    const replicas = new uPlot(
      {
        width: width(),
        height: 220,
        tzDate: UTC,
        cursor,
        legend: { live: true },
        scales: { y: { range: (_, low, high) => [Math.min(0, low), Math.max(high + 1, 2)] } },
        axes: [timeAxis(), axis({ incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], size: 46 })],
        series: [
          { label: "time", value: (_, t) => (t === null ? "–" : `${history?.source === "prometheus" ? `${day(t)} ` : ""}${clock(t)} UTC`) },
          { label: "max", stroke: colour("--dim"), width: 1, paths: stepped(), points: { show: false }, value: whole },
          { label: "min", stroke: colour("--dim"), width: 1, paths: stepped(), points: { show: false }, value: whole },
          { label: "desired", stroke: colour("--line1"), width: 1.5, dash: [5, 4], paths: stepped(), points: { show: false }, value: whole },
          { label: "replicas", stroke: text, width: 2, paths: stepped(), points: { show: false }, value: whole },
        ],
        bands: [{ series: [1, 2], fill: colour("--band") }],
        plugins: [shade],
        hooks: { setCursor: [follow] },
      },
      columns(),
      above,
    );
    plots = [replicas];
    explainShades();
    if (history.metrics.length === 0) return;
    const metrics = history.metrics;
    plots.push(
      new uPlot(
        {
          width: width(),
          height: 170,
          tzDate: UTC,
          cursor,
          scales: { y: { range: (_, low, high) => [Math.min(0, low), Math.min(Math.max(high * 1.05, 120), MAX_RATIO)] } },
          axes: [timeAxis(), axis({ values: (_, splits) => splits.map((v) => `${v}%`), size: 46 })],
          series: [
            { label: "time", value: (_, t) => (t === null ? "–" : `${history?.source === "prometheus" ? `${day(t)} ` : ""}${clock(t)} UTC`) },
            ...metrics.map((metric, index): uPlot.Series => ({
              label: `${metric.name}${metric.target === null ? "" : ` (target ${number(metric.target)}${metric.unit})`}`,
              stroke: colour(LINES[index % LINES.length]!),
              width: 1.5,
              spanGaps: false,
              points: { show: false },
              value: (_, __, ___, at) => {
                const value = at === null || at === undefined ? null : history?.points[at]?.values[index];
                return value === null || value === undefined ? "–" : `${number(value)}${metric.unit}`;
              },
            })),
          ],
          plugins: [target()],
          hooks: { setCursor: [follow] },
        },
        ratios(),
        below,
      ),
    );
  }

  function explainShades(): void {
    for (const [kind, swatch] of Object.entries(shades)) swatch.hidden = !history?.points.some((point) => point.held === kind);
  }

  /** The line at 100 %: each metric is drawn as part of its target. */
  function target(): uPlot.Plugin {
    return {
      hooks: {
        draw: (plot) => {
          const { ctx, bbox } = plot;
          const y = plot.valToPos(100, "y", true);
          ctx.save();
          ctx.strokeStyle = colour("--dim");
          ctx.setLineDash([4, 4]);
          ctx.beginPath();
          ctx.moveTo(bbox.left, y);
          ctx.lineTo(bbox.left + bbox.width, y);
          ctx.stroke();
          ctx.restore();
        },
      },
    };
  }

  function columns(): uPlot.AlignedData {
    const points = history?.points ?? [];
    return [
      points.map((p) => p.t),
      points.map((p) => p.max),
      points.map((p) => p.min),
      points.map((p) => p.desired),
      points.map((p) => p.current),
    ];
  }

  function ratios(): uPlot.AlignedData {
    const points = history?.points ?? [];
    const lines = (history?.metrics ?? []).map((metric, index) =>
      points.map((p) => {
        const value = p.values[index];
        if (value === null || value === undefined || !metric.target) return null;
        return (value / metric.target) * 100;
      }),
    );
    return [points.map((p) => p.t), ...lines] as uPlot.AlignedData;
  }

  const resized = new ResizeObserver(() => plots.forEach((plot) => plot.width !== width() && plot.setSize({ width: width(), height: plot.height })));
  resized.observe(element);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", build);

  return {
    element,
    update(next) {
      history = { ...next, points: withGaps(next) };
      const now = JSON.stringify(next.metrics);
      if (now !== shape || plots.length === 0) {
        shape = now;
        build();
        return;
      }
      // A part that was chosen by dragging stays; a double click shows everything again.
      const [low, high] = [plots[0]?.data[0]?.[0] ?? 0, plots[0]?.data[0]?.at(-1) ?? 0];
      const { min, max } = plots[0]?.scales["x"] ?? {};
      const isWhole = min === undefined || max === undefined || (min <= low && max >= high);
      explainShades();
      plots[0]?.setData(columns(), isWhole);
      plots[1]?.setData(ratios(), isWhole);
      if (!isWhole) plots.forEach((plot) => plot.redraw());
    },
    choose(mark) {
      chosen = mark;
      plots.forEach((plot) => plot.redraw(false));
    },
    close() {
      resized.disconnect();
      dark.removeEventListener("change", build);
      plots.forEach((plot) => plot.destroy());
    },
  };
}
