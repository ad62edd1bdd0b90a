/**
 * Rows as lines: columns aligned, or separated by tabs.
 * @param right index of the first right-aligned column
 */
export function table(
  rows: readonly (readonly string[])[],
  { aligned, right = Number.POSITIVE_INFINITY }: { readonly aligned: boolean; readonly right?: number },
): string {
  if (!aligned) return rows.map((row) => row.join('\t')).join('\n');
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const cells = (row: readonly string[]) =>
    row.map((cell, i) => (i < right ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)));
  return rows.map((row) => cells(row).join('  ').trimEnd()).join('\n');
}
