import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '@tapedeck/tape/internal';
import type { Retention } from '../format.ts';

/** The days for which Claude Code keeps a transcript whose settings say nothing. */
const usual = 30;

/**
 * What the user's settings of Claude Code say, in its directory. Today it takes whole numbers from 1 on, and deletes nothing
 * while its settings are invalid. To earlier versions 0 meant to keep none. So 0 counts as that, and the default counts in
 * the place of what is no number of days: it is better to warn in vain.
 */
export function retentionIn(directory: string): Retention {
  const file = join(directory, 'settings.json');
  const unreadable = { days: usual, file, fault: 'it cannot be read' };
  let settings: unknown;
  try {
    // A pipe would be read without an end.
    if (!statSync(file).isFile()) return unreadable;
    settings = JSON.parse(readFileSync(file, 'utf8').replace(/^\u{feff}/u, ''));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { days: usual };
    return unreadable;
  }
  const days = isObject(settings) ? settings.cleanupPeriodDays : undefined;
  if (days === undefined) return { days: usual };
  if (days === 0)
    return { days, file, fault: 'cleanupPeriodDays is 0, with which earlier versions keep none' };
  if (typeof days === 'number' && Number.isInteger(days) && days > 0) return { days, file };
  return { days: usual, file, fault: 'cleanupPeriodDays is no number of days' };
}
