import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { countsOf, reasonsOf, STARTED, type Timeline } from '../data/timeline.ts';

export interface Chart {
  show(timeline: Timeline, hidden: ReadonlySet<string>): void;
  dispose(): void;
}

/** Draws into an element, as wide as it is; tells in words what is under the pointer. */
export function makeChart(frame: HTMLElement, tell: (words: string) => void): Chart {
  let plot: uPlot | null = null;
  let shape = '';
  let current: { timeline: Timeline; names: readonly string[] } | null = null;
  const size = (): { width: number; height: number } => ({
    width: Math.max(280, frame.clientWidth),
    height: Math.max(220, Math.min(420, Math.round(frame.clientWidth * 0.42))),
  });
  const watch = new ResizeObserver(() => plot?.setSize(size()));
  watch.observe(frame);
  const say = (slot: number | null | undefined): void => tell(wordsAt(current, slot ?? null));
  return {
    show(timeline, hidden) {
      const reasons = reasonsOf(timeline);
      const names = reasons.filter((name) => !hidden.has(name));
      const line = !hidden.has(STARTED);
      current = { timeline, names: line ? [STARTED, ...names] : names };
      const data = dataOf(timeline, names, line);
      const nextShape = JSON.stringify([reasons, names, line, timeline.step]);
      // What is drawn has changed, not only how much: uPlot is made for the latter.
      if (plot === null || nextShape !== shape) {
        plot?.destroy();
        shape = nextShape;
        plot = new uPlot({ ...size(), ...optionsFor(reasons, names, line, say) }, data, frame);
      } else plot.setData(data);
    },
    dispose() {
      watch.disconnect();
      plot?.destroy();
      plot = null;
    },
  };
}

/** Each bar stands on those before it; the highest is drawn first, and the others over it. */
function dataOf(timeline: Timeline, names: readonly string[], line: boolean): uPlot.AlignedData {
  const heights: number[][] = [];
  let below: readonly number[] = timeline.slots.map(() => 0);
  for (const name of names) {
    const counts = countsOf(timeline, name);
    const height = below.map((under, slot) => under + (counts[slot] ?? 0));
    heights.unshift(height);
    below = height;
  }
  return [[...timeline.slots], ...heights, ...(line ? [[...timeline.started]] : [])];
}

function optionsFor(
  reasons: readonly string[],
  names: readonly string[],
  line: boolean,
  say: (slot: number | null | undefined) => void,
): Omit<uPlot.Options, 'width' | 'height'> {
  const ink = colour('--muted');
  const axis = { stroke: ink, grid: { stroke: colour('--border'), width: 1 }, ticks: { show: false } };
  const bars = uPlot.paths.bars?.({ size: [0.72, 28], align: 1 });
  const series: uPlot.Series[] = [...names].reverse().map((name) => {
    const index = reasons.indexOf(name);
    const fill = fillOf(index);
    return { label: name, fill: () => fill, width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) };
  });
  if (line) series.push({ label: STARTED, stroke: colour('--text'), width: 2, points: { show: false } });
  return {
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(4, Math.ceil((most ?? 0) * 1.15))] } },
    axes: [
      { ...axis, values: (_, times) => times.map((time) => clockWords(time, (times.at(-1) ?? 0) - (times[0] ?? 0))) },
      { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000] },
    ],
    series: [{}, ...series],
    hooks: { setCursor: [(plot) => say(plot.cursor.idx)] },
  };
}

const DAY = 86_400;

/** A time under the chart: the hour, or the day when there are several. */
function clockWords(seconds: number, range: number): string {
  const time = new Date(seconds * 1000);
  if (range > 2 * DAY) return time.toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
  return time.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}

function wordsAt(current: { timeline: Timeline; names: readonly string[] } | null, slot: number | null): string {
  if (current === null || slot === null) return '';
  const { timeline, names } = current;
  const at = timeline.slots[slot];
  if (at === undefined) return '';
  const counts = names
    .map((name) => [name, countsOf(timeline, name)[slot] ?? 0] as const)
    .filter(([, count]) => count > 0);
  const what = counts.length === 0 ? 'nothing' : counts.map(([name, count]) => `${name} ${count}`).join(', ');
  return `${new Date(at * 1000).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'short' })}: ${what}`;
}

/** A colour of the page as the canvas understands it: resolved for the theme that is on. */
function colour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

/** Eight colours that everybody can tell apart; after them the same ones hatched. */
function fillOf(index: number): string | CanvasPattern {
  const plain = colour(`--series-${index % 8}`);
  if (index < 8) return plain;
  const tile = document.createElement('canvas');
  [tile.width, tile.height] = [6, 6];
  const pen = tile.getContext('2d');
  if (pen === null) return plain;
  pen.strokeStyle = plain;
  pen.lineWidth = 2.5;
  pen.beginPath();
  pen.moveTo(-1, 7);
  pen.lineTo(7, -1);
  pen.stroke();
  return pen.createPattern(tile, 'repeat') ?? plain;
}
