import { resolve, sep } from 'node:path';
import type { Entry, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { UsageError } from '../errors/kinds.ts';

/** What `--where` takes, in words. */
export const whereHelp =
  'Only what was said there or by that: dir=DIR (or below it), branch=NAME, model=NAME or version=TEXT (of the program that an import comes from); several between commas, * at the end for any rest';

const fields = ['dir', 'branch', 'model', 'version'] as const;

/** A field of an entry and what it has to be. */
export interface Condition {
  readonly field: (typeof fields)[number];
  readonly value: string;
}

/**
 * Reads the conditions of a text: `branch=main,model=claude-*`. A value may have commas; a directory is one in `cwd`.
 * @throws UsageError
 */
export function conditionsIn(text: string, cwd: string): readonly Condition[] {
  return text.split(/,(?=[a-z]+=)/).map((part) => {
    const at = part.indexOf('=');
    const field = fields.find((one) => one === part.slice(0, at));
    const value = part.slice(at + 1);
    if (at < 1 || field === undefined || value === '')
      throw new UsageError(`cannot select where '${part}': it must be ${fields.join('=, ')}= and a value`);
    return { field, value: field === 'dir' ? resolve(cwd, value) : value };
  });
}

/** Whether an entry records all that is wanted. One that records nothing of a field is not wanted. */
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
