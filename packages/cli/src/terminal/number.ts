/** A large number in few columns: `950`, `1.2k`, `34k`, `5.6M`. */
export function shortNumber(n: number): string {
  if (n < 1000) return String(Math.round(n));
  const units = ['k', 'M', 'G', 'T'];
  let value = n;
  let unit = -1;
  // 999,950 is 1.0M, and not 1000.0k.
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${units[unit]}`;
}
