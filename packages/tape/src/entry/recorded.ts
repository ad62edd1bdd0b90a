import { sep } from 'node:path';
import type { Entry } from './entry.ts';
import { isObject, type JsonObject } from './json.ts';

/** What an entry records of where it was said, and by what: the directory, the branch, the model, the program's version. */
export const recordedFields = ['dir', 'branch', 'model', 'version'] as const;

/** A field that entries record, and what it has to be. */
export interface Condition {
  readonly field: (typeof recordedFields)[number];
  /** Any rest may follow where it ends with `*`; a directory is also any below it. */
  readonly value: string;
}

/** Whether an entry records all that is wanted. One that records nothing of a field is not wanted. Pure. */
export function isWhere({ meta }: Pick<Entry, 'meta'>, conditions: readonly Condition[]): boolean {
  return conditions.every(({ field, value }) => {
    const recorded = recordedOf(meta, field);
    if (typeof recorded !== 'string') return false;
    if (value.endsWith('*')) return recorded.startsWith(value.slice(0, -1));
    return (
      recorded === value ||
      (field === 'dir' && recorded.startsWith(value.endsWith(sep) ? value : value + sep))
    );
  });
}

function recordedOf(meta: JsonObject, field: Condition['field']): unknown {
  if (field === 'model' || field === 'version') return meta[field];
  const { cwd, git } = isObject(meta.place) ? meta.place : {};
  if (field === 'dir') return cwd;
  return isObject(git) ? git.branch : undefined;
}
