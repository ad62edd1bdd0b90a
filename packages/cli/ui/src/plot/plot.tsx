import { useEffect, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import type { UsageRow } from '../../../src/page/data.ts';
import { short } from '../parts/numbers.tsx';
import { counts, filledDays, stacked } from './series.ts';

const height = 220;
/** The colours of the counts, the highest of the stack first. */
const colours = ['--lane-3', '--lane-2', '--lane-0', '--lane-1', '--lane-5'];

/** Tokens by day, stacked. A table beside it has the same figures. */
export function Plot({ days }: { readonly days: readonly UsageRow[] }) {
  const place = useRef<HTMLDivElement>(null);
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const changed = () => setTheme((n) => n + 1);
    const media = matchMedia('(prefers-color-scheme: dark)');
    const watch = new MutationObserver(changed);
    media.addEventListener('change', changed);
    watch.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      media.removeEventListener('change', changed);
      watch.disconnect();
    };
  }, []);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const plot = new UPlot(
      optionsFor(element, days.length),
      stacked(filledDays(days)) as UPlot.AlignedData,
      element,
    );
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [days, theme]);
  return (
    <figure class="plot">
      <div ref={place} aria-hidden="true" style={{ height: `${height}px` }} />
      <figcaption>
        {counts.toReversed().map(([count, name], i) => (
          <span key={count} class="swatch" style={{ '--swatch': `var(${colours[i]})` }}>
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function optionsFor(element: HTMLElement, days: number): UPlot.Options {
  const colourOf = (name: string) => colourIn(element, name);
  const axis = {
    stroke: colourOf('--soft'),
    grid: { stroke: colourOf('--line'), width: 1 },
    ticks: { stroke: colourOf('--line'), width: 1, size: 4 },
    font: '11px system-ui, sans-serif',
  };
  const bars = UPlot.paths.bars?.({ size: [0.8, 36], ...(days < 3 && { align: 0 }) });
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'UTC'),
    scales: {
      x: { time: true, range: (plot) => halfADayMore(plot.data[0]) },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] },
    },
    axes: [
      {
        ...axis,
        values: (_, at) => at.map(dayText),
        incrs: [1, 2, 7, 14, 30, 91, 182, 365].map((n) => n * 86_400),
      },
      { ...axis, size: 48, values: (_, at) => at.map(short) },
    ],
    series: [
      {},
      ...colours.map((name) => ({
        fill: colourOf(name),
        width: 0,
        points: { show: false },
        ...(bars !== undefined && { paths: bars }),
      })),
    ],
  };
}

/** From the first to the last, with room for a bar at each. uPlot's own last one is 1,000 days later where there is one day. */
function halfADayMore(days: ArrayLike<number>): [from: number, to: number] {
  const first = days[0] ?? 0;
  return [first - 43_200, (days[days.length - 1] ?? first) + 43_200];
}

/** A colour of the theme as a canvas takes it. */
function colourIn(element: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function dayText(seconds: number): string {
  return new Date(seconds * 1000).toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  });
}
