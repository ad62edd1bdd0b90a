/** Replaces the parts that differ from run to run: the digits of derived names, times, hashes, ids and sizes. */
export function steady(text: string): string {
  return text
    .replace(/(?<=\w-)[0-9a-f]{8}(?![0-9a-f-])/g, '########')
    .replace(/(?<=\bcall_)[0-9a-f]{8}/g, '########')
    .replace(/(?<=<\/?merge-)[0-9a-f]{8}/g, '########')
    .replace(/\b[0-9a-f]{64}\b/g, 'HASH')
    .replace(/\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g, 'ULID')
    .replace(/(?<=\bprocess )\d+/g, 'PID')
    .replace(/\b\d+(?:\.\d)? (?:B|KB)\b/g, 'SIZE')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, 'TIME');
}
