import type { BlamedPart } from '@tapedeck/runtime';
import { oneLine } from '../escape.ts';
import { firstFitting, tabbed } from './table.ts';
import { sourceJson } from './trace.ts';

/** A part of a view as `--json` prints it; part of the documented contract. */
export function blameJson({ from, text: _, ...part }: BlamedPart): Readonly<Record<string, unknown>> {
  return { ...part, from: from.map(sourceJson) };
}

/** How much of a text a row has. */
const textMax = 60;

/** The parts of a view, one row each: position, role, session, who made it, run, what it brings, and its text. */
export function blameText(
  parts: readonly BlamedPart[],
  {
    aligned,
    width,
    distinct,
  }: { readonly aligned: boolean; readonly width: number; readonly distinct?: (name: string) => number },
): string {
  const rows = parts.map((part) => [
    `${part.inherited ? '↑' : ''}${part.seq}`,
    part.what === 'message' ? part.role : part.what,
    part.session,
    part.model ?? part.author ?? part.tool ?? part.source ?? '',
    part.run?.slice(-6) ?? '',
    [
      ...(part.summarizer === undefined ? [] : [`by ${part.summarizer}`]),
      ...part.from.map(({ session, range }) => (range === null ? session : `${session} ${range.join('-')}`)),
    ].join(', '),
    oneLine(part.text, textMax),
  ]);
  if (!aligned) return tabbed(rows);
  const without = (columns: readonly number[], least: number) => ({
    rows: rows.map((row) => row.map((cell, i) => (columns.includes(i) ? '' : cell))),
    width,
    names: [2, 5],
    distinct,
    least,
  });
  // A narrow terminal has no room for the role, then for the run, and then for the text.
  return firstFitting([without([], 8), without([1], 8), without([1, 4], 12), without([1, 4, 6], 8)]);
}
