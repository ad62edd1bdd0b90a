import { join } from 'node:path';
import type { Import } from './imports.ts';

/** Room of a file: the folder right below `src`, or the file's own name where it lies directly in `src`. */
function roomOf(file: string): string {
  const [first = ''] = file.split('/').slice(3);
  return first.replace(/\.ts$/, '');
}

/** The relative imports, each with the file that it reaches. */
function arrows(imports: readonly Import[]): readonly { readonly file: string; readonly to: string }[] {
  return imports
    .filter(({ from }) => from.startsWith('.'))
    .map(({ file, from }) => ({ file, to: join(file, '..', from) }));
}

/** What breaks an order of rooms, which names the highest first: `file -> import`, each with the reason. */
export function upwardImports(imports: readonly Import[], order: readonly string[]): string[] {
  return arrows(imports).flatMap(({ file, to }) => {
    const [from, target] = [roomOf(file), roomOf(to)];
    if (from === target) return [];
    const unknown = [from, target].find((room) => !order.includes(room));
    if (unknown !== undefined) return [`${file} -> ${to}: the room ${unknown} is not in the list`];
    return order.indexOf(from) < order.indexOf(target)
      ? []
      : [`${file} -> ${to}: the room ${target} is not below ${from}`];
  });
}

/** Groups of files that import each other in a circle, each sorted. */
export function circles(imports: readonly Import[]): string[][] {
  const next = new Map<string, string[]>();
  for (const { file, to } of arrows(imports)) {
    next.set(file, [...(next.get(file) ?? []), to]);
    if (!next.has(to)) next.set(to, []);
  }
  const reach = new Map([...next.keys()].map((file) => [file, reachable(file, next)]));
  const found = new Map<string, string[]>();
  for (const [file, reached] of reach) {
    if (!reached.has(file)) continue;
    const circle = [...reached].filter((other) => reach.get(other)?.has(file)).sort();
    found.set(circle.join(' '), circle);
  }
  return [...found.values()];
}

function reachable(start: string, next: ReadonlyMap<string, readonly string[]>): Set<string> {
  const seen = new Set<string>();
  const left = [...(next.get(start) ?? [])];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    left.push(...(next.get(file) ?? []));
  }
  return seen;
}
