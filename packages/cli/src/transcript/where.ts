import { resolve } from 'node:path';
import { recordedFields } from '@tapedeck/tape/internal';
import type { Condition } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import type { Io } from '../io.ts';

/** What `--where` takes, in words. */
export const whereHelp =
  'Only what was said there or by that: dir=DIR (or below it), branch=NAME, model=NAME or version=TEXT (of the program that an import comes from); several between commas, * at the end for any rest';

/**
 * Reads the conditions of a text: `branch=main,model=claude-*`. A value may have commas; a directory is one in that of the command,
 * or in that of the user: not each shell knows a `~` behind `dir=`.
 * @throws UsageError
 */
export function conditionsIn(text: string, { cwd, env }: Pick<Io, 'cwd' | 'env'>): readonly Condition[] {
  return text.split(/,(?=[a-z]+=)/).map((part) => {
    const at = part.indexOf('=');
    const field = recordedFields.find((one) => one === part.slice(0, at));
    const value = part.slice(at + 1);
    if (at < 1 || field === undefined || value === '')
      throw new UsageError(
        `cannot select where '${part}': it must be ${recordedFields.join('=, ')}= and a value`,
      );
    if (field !== 'dir') return { field, value };
    return {
      field,
      value: resolve(
        cwd,
        value.replace(/^~(?=\/|$)/, () => env.HOME ?? '~'),
      ),
    };
  });
}
