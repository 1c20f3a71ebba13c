import { useEffect, useRef, useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { nameOf } from '../data/rooms.ts';
import { oneOfEachStore } from '../data/stores.ts';
import {
  askTimeline,
  countsOf,
  RANGES,
  type Range,
  reasonsOf,
  STARTED,
  type Timeline,
  total,
} from '../data/timeline.ts';
import type { World } from '../data/world.ts';
import { mediaSignal, theme } from '../ui.ts';
import { usePolled } from './asking.ts';
import type { Chart } from './chart.ts';
import { Button, Choice, PlainText, Trouble } from './parts.tsx';

const REFRESH_MS = 4_000;
const systemIsDark = mediaSignal('(prefers-color-scheme: dark)');

/** Who started and who ended, and why, over time. */
export function TimelineView() {
  const { world } = useSpace();
  const [range, setRange] = useState<Range>(RANGES[0]);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const ready = world.calm.value > 0 && world.sources.some(({ state }) => state === 'live');
  const { answer, trouble } = usePolled(() => askStores(world, range), REFRESH_MS, [range, ready]);
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  return (
    <section class="view timeline-view" aria-labelledby="view-title">
      <div class="view-head">
        <h1 id="view-title">Timeline</h1>
        <Choice
          legend="How far back"
          options={RANGES.map(({ words }) => words)}
          chosen={range.words}
          onChoose={(words) => setRange(RANGES.find((one) => one.words === words) ?? range)}
        />
      </div>
      <Trouble text={trouble} />
      {answer !== null && (
        <>
          {answer.missing.length > 0 && (
            <p class="notice">Without {answer.missing.join(', ')}: not heard at the moment.</p>
          )}
          <ChartFrame timeline={answer.timeline} hidden={hidden} />
          <ChartLegend timeline={answer.timeline} hidden={hidden} onToggle={toggle} />
          <TimelineTable timeline={answer.timeline} />
        </>
      )}
    </section>
  );
}

/** Starts and ends in all stores that are heard, and the names of those that are not. */
async function askStores(world: World, range: Range) {
  const stores = oneOfEachStore(world.sources);
  const live = stores.filter(({ state }) => state === 'live').map(({ source }) => source);
  const timeline = await askTimeline(live, range, Date.now());
  return { timeline, missing: stores.filter(({ state }) => state !== 'live').map(nameOf) };
}

interface FrameProps {
  readonly timeline: Timeline;
  readonly hidden: ReadonlySet<string>;
}

function ChartFrame({ timeline, hidden }: FrameProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<Chart | null>(null);
  const [readout, setReadout] = useState('');
  // A canvas does not change its colours by itself.
  const mode = `${theme.value} ${systemIsDark.value}`;
  useEffect(() => {
    let made: Chart | null = null;
    let wanted = true;
    // Loaded when it is looked at: most of what this page weighs.
    void import('./chart.ts').then(({ makeChart }) => {
      if (!wanted || frame.current === null) return;
      made = makeChart(frame.current, setReadout);
      setChart(made);
    });
    return () => {
      wanted = false;
      made?.dispose();
    };
  }, [mode]);
  useEffect(() => chart?.show(timeline, hidden), [chart, timeline, hidden]);
  return (
    <figure class="chart">
      <div ref={frame} class="chart-frame" />
      <figcaption class="readout">
        {readout === '' ? 'Bars: sessions that ended, by reason. Line: sessions that started.' : readout}
      </figcaption>
    </figure>
  );
}

function ChartLegend({ timeline, hidden, onToggle }: FrameProps & { onToggle: (name: string) => void }) {
  const reasons = reasonsOf(timeline);
  const names = [STARTED, ...reasons];
  return (
    <ul class="chart-legend" aria-label="What is shown">
      {names.map((name, index) => (
        <li key={name}>
          <Button aria-pressed={!hidden.has(name)} data-series={name} onClick={() => onToggle(name)}>
            <span
              class="swatch"
              data-colour={index === 0 ? 'line' : (index - 1) % 8}
              data-hatched={index > 8}
              aria-hidden="true"
            />
            <PlainText text={name} />
            <strong>{total(countsOf(timeline, name)).toLocaleString()}</strong>
          </Button>
        </li>
      ))}
    </ul>
  );
}

function TimelineTable({ timeline }: { timeline: Timeline }) {
  const names = [STARTED, ...reasonsOf(timeline)];
  const busy = [...timeline.slots.keys()].filter((slot) =>
    names.some((name) => (countsOf(timeline, name)[slot] ?? 0) > 0),
  );
  return (
    <details class="as-table">
      <summary>The same as a table</summary>
      {busy.length === 0 ? (
        <p class="empty">Nothing has happened in this time.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        <section class="scroll" tabIndex={0} aria-label="Starts and ends as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">from</th>
                {names.map((name) => (
                  <th key={name} scope="col">
                    <PlainText text={name} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {busy.reverse().map((slot) => (
                <tr key={slot}>
                  <th scope="row">{new Date((timeline.slots[slot] ?? 0) * 1000).toLocaleString()}</th>
                  {names.map((name) => (
                    <td key={name}>{countsOf(timeline, name)[slot] ?? 0}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </details>
  );
}
