/** The times that JavaScript can write, in milliseconds on each side of the epoch. */
const furthest = 8.64e15;

/** Whether a number of milliseconds since the epoch is a time that can be written. */
export function isTime(ms        )          {
  return Math.abs(ms) <= furthest;
}

/** Writes a stored time in ISO 8601. One that is out of range, which `verify` reports, is written as the nearest. */
export function isoTime(ms        )         {
  return new Date(Math.max(-furthest, Math.min(furthest, ms))).toISOString();
}
