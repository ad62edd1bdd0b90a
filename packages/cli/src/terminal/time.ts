const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const units: readonly (readonly [names: RegExp, ms: number])[] = [
  [/^s(?:ec(?:ond)?s?)?$/, second],
  [/^m(?:in(?:ute)?s?)?$/, minute],
  [/^h(?:(?:ou)?rs?)?$/, hour],
  [/^d(?:ays?)?$/, day],
  [/^w(?:eeks?)?$/, 7 * day],
];

/** How many months a unit has that is as long as the calendar says. */
const months: readonly (readonly [names: RegExp, count: number])[] = [
  [/^mo(?:n(?:ths?)?)?$/, 1],
  [/^y(?:(?:ea)?rs?)?$/, 12],
];

/**
 * Reads `2 hours ago`, `90 min`, `3d`, `2 years ago`, `now`, `today` or `yesterday`: days begin in UTC. Undefined for
 * another text.
 */
export function readRelativeTime(text: string, now: number): number | undefined {
  const today = now - (now % day);
  const word = { now, today, yesterday: today - day }[text];
  if (word !== undefined) return word;
  const [, count, name = ''] = /^(\d{1,9})\s*([a-z]+)(?:\s+ago)?$/.exec(text) ?? [];
  if (count === undefined) return undefined;
  const unit = units.find(([names]) => names.test(name));
  if (unit !== undefined) return now - Number(count) * unit[1];
  const month = months.find(([names]) => names.test(name));
  return month === undefined ? undefined : monthsBefore(now, Number(count) * month[1]);
}

/** The same time of the same day, some months before; of a month that has no such day the last one. */
function monthsBefore(now: number, count: number): number | undefined {
  const date = new Date(now);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() - count);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  const time = date.setUTCDate(Math.min(day, last));
  return Number.isNaN(time) ? undefined : time;
}

/** How long ago a time is, in few columns: `now`, `5 min ago`, `3 h ago`, `2 days ago`, and from 30 days on its date. */
export function relativeTime(at: number, now: number): string {
  const age = now - at;
  if (age < 10 * second) return age > -10 * second ? 'now' : isoDay(at);
  if (age < minute) return `${Math.floor(age / second)} s ago`;
  if (age < hour) return `${Math.floor(age / minute)} min ago`;
  if (age < day) return `${Math.floor(age / hour)} h ago`;
  if (age < 2 * day) return '1 day ago';
  return age < 30 * day ? `${Math.floor(age / day)} days ago` : isoDay(at);
}

/** The same in fewer columns: `now`, `5m`, `3h`, `2d`, from 30 days on `Mar 14`, and from 300 days on `2025-03`. */
export function briefTime(at: number, now: number): string {
  const age = now - at;
  if (Math.abs(age) < 10 * second) return 'now';
  for (const [end, unit, name] of [
    [minute, second, 's'],
    [hour, minute, 'm'],
    [day, hour, 'h'],
    [30 * day, day, 'd'],
  ] as const)
    if (age > 0 && age < end) return `${Math.floor(age / unit)}${name}`;
  if (Math.abs(age) >= 300 * day) return isoDay(at).slice(0, 7);
  return new Date(at).toLocaleDateString('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
}

/**
 * The time of a day, in few columns: how long ago within a day, and before that the minute in UTC: `10:03`; with the date,
 * if that is another one than `shownDay`.
 */
export function timeOfDay(at: number, now: number, shownDay: string): string {
  if (Math.abs(now - at) < day) return relativeTime(at, now);
  const minute = new Date(at).toISOString().slice(0, 16).replace('T', ' ');
  return isoDay(at) === shownDay ? minute.slice(-5) : minute;
}

/** The day of a time in UTC: `2026-11-21`. */
export function isoDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
