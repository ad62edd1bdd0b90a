/** A number in a few characters: `950`, `1.2k`, `34k`, `5.6M`. */
export function short(n: number): string {
  if (n < 1000) return String(n);
  const [unit, size] = n < 999_500 ? ['k', 1e3] : n < 999_500_000 ? ['M', 1e6] : ['G', 1e9];
  const scaled = n / size;
  return `${scaled < 9.95 ? scaled.toFixed(1) : Math.round(scaled)}${unit}`;
}

/** A whole number with groups of digits: `10,000`. */
export function grouped(n: number): string {
  return n.toLocaleString('en-US');
}

/** A number and what it counts: `1 session`, `10,000 sessions`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${grouped(n)} ${n === 1 ? one : many}`;
}

const steps: readonly (readonly [seconds: number, unit: string])[] = [
  [7 * 86_400, 'd'],
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'm'],
];

/** How long ago a time is, in a few characters, or its date. */
function ago(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  if (seconds >= 7 * 86_400 || seconds < -60) return dateOf(at, now);
  for (const [size, unit] of steps.slice(1))
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  return 'now';
}

function dateOf(at: Date, now: Date): string {
  const day = { day: 'numeric', month: 'short' } as const;
  const year = at.getFullYear() === now.getFullYear() ? {} : ({ year: 'numeric' } as const);
  return at.toLocaleDateString('en-GB', { ...day, ...year });
}

/** A time as how long ago it is; the whole of it on hover and for machines. */
export function Ago({ at }: { readonly at: string | undefined }) {
  if (at === undefined) return <span class="faint">never</span>;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  return (
    <time dateTime={at} title={date.toLocaleString('en-GB')}>
      {ago(date, new Date())}
    </time>
  );
}

/** The time of a day, `14:03:07`. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}
