import { join } from 'node:path';
import type { Import } from './imports.ts';

/** Room of a file: the folder right below `src`, or the file's own name where it lies directly in `src`. */
export function roomOf(file: string): string {
  const [first = ''] = file.split('/').slice(3);
  return first.replace(/\.ts$/, '');
}

/** The paragraph at the top of a source text: its first docstring on one line, or nothing where it begins otherwise. */
export function paragraphOf(text: string): string {
  const docstring = /^\/\*\*([\s\S]*?)\*\//.exec(text)?.[1] ?? '';
  return docstring.replace(/^ \*/gm, ' ').replace(/\s+/g, ' ').trim();
}

/**
 * What is wrong with the paragraph of a folder: it is too short, or the sentence about its imports omits
 * some. `and what lies below` means all that follows the first name in the order.
 */
export function paragraphFaults(
  paragraph: string,
  { order, imported }: { readonly order: readonly string[]; readonly imported: readonly string[] },
): string[] {
  if (paragraph.length < 120) return ['it does not begin with a paragraph'];
  const sentence = /\b(?:imports|may import|files import)\b(.*?)\.(?= |$)/i.exec(paragraph)?.[1];
  if (sentence === undefined) return ['its paragraph does not say what it imports'];
  const named = Array.from(sentence.matchAll(/`([^`]+)`/g), ([, name = '']) => name);
  const highest = Math.min(...named.map((name) => order.indexOf(name)));
  const isSaid = (name: string) =>
    named.includes(name) || (/\bbelow\b/.test(sentence) && order.indexOf(name) > highest);
  return [
    ...named.filter((name) => !order.includes(name)).map((name) => `there is no ${name}`),
    ...imported.filter((name) => !isSaid(name)).map((name) => `it imports ${name}, which it does not say`),
  ];
}

/** The relative imports, each with the file that it reaches. */
export function arrows(
  imports: readonly Import[],
): readonly { readonly file: string; readonly to: string }[] {
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
