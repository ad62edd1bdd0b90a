import type { RawDb } from './raw-db.ts';

/**
 * How the text of a graph file differs from the lineage of its database: its record lines must be the database's,
 * in their order. Lines that are no JSON are what a crash left and the next writer sealed.
 */
export function graphDifferences(text: string, db: RawDb): string[] {
  const recorded = db.all<{ line: string }>('SELECT line FROM lineage ORDER BY g').map(({ line }) => line);
  const written = text.split('\n').filter(isJson);
  const differing = Array.from({ length: Math.max(recorded.length, written.length) }, (_, i) => i).filter(
    (i) => recorded[i] !== written[i],
  );
  return [
    ...(text === '' || text.endsWith('\n') ? [] : ['the graph file does not end with LF']),
    ...differing.slice(0, 1).map((i) => `line ${i + 1} is ${written[i]}, not ${recorded[i]}`),
  ];
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
