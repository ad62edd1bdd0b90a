import type { Json } from '@tapedeck/tape';
import { titleLine } from '@tapedeck/tape/internal';
import { text } from '../../plan/text.ts';
import type { CodeRecord } from './records.ts';

/**
 * The title: the user's, or else the model's, or else the last summary of a record in this file. Most
 * summaries in a file describe other sessions.
 */
export function titleOf(records: readonly CodeRecord[]): string | undefined {
  // One that is blank says nothing: it takes no other one away.
  const isTitle = (value: Json | undefined) => titleLine(text(value) ?? '') !== undefined;
  const last = (type: string, field: string): string | undefined =>
    text(records.findLast((record) => record.type === type && isTitle(record.raw[field]))?.raw[field]);
  const summed = new Set(records.flatMap(({ type, leaf }) => (type === 'summary' && leaf) || []));
  const here = new Set(
    summed.size === 0 ? [] : records.flatMap(({ id }) => (id !== undefined && summed.has(id) ? id : [])),
  );
  const own = records.findLast(({ type, leaf }) => type === 'summary' && here.has(leaf ?? ''));
  return last('custom-title', 'customTitle') ?? last('ai-title', 'aiTitle') ?? text(own?.raw.summary);
}
