import type { FileImport } from '@tapedeck/runtime/import';
import { quote } from '@tapedeck/tape/internal';
import { describeError } from '../errors/describe.ts';
import { pathText } from '../escape.ts';
import { counted } from '../output/counted.ts';

/** A file that was left out, with the reason. */
export interface LeftOut {
  readonly file: string;
  /** The session of the file that took nothing; others may have what is new. */
  readonly session?: string;
  readonly why: string;
}

/** What failed of a file, with what can be done. */
export function leftOutBy({ file: { path: file }, brought, lacking, error }: FileImport): readonly Failed[] {
  const sessions = (brought?.sessions ?? lacking ?? []).flatMap(({ session, refused }) =>
    refused === undefined ? [] : [{ file, session, ...reasonOf(refused, [file, session]) }],
  );
  if (sessions.length > 0 || error === undefined) return sessions;
  return [failureOf(file, error, file)];
}

export interface Failed extends LeftOut {
  readonly code: string;
}

/** A file of which nothing was taken. `named`: as the user named it. */
export function failureOf(file: string, error: unknown, named: string): Failed {
  const { session } = (error as { readonly data?: { readonly session?: unknown } }).data ?? {};
  return { file, ...reasonOf(error, [file, named, String(session)]) };
}

/** Why something failed, without the names that stand before the reason already. */
function reasonOf(error: unknown, names: readonly string[]): Pick<Failed, 'code' | 'why'> {
  const { code, message, hint } = describeError(error);
  const begins = names.flatMap((name) =>
    ['import', 'import into', 'read'].map((act) => `cannot ${act} ${quote(name)}: `),
  );
  const begin = begins.find((one) => message.startsWith(one)) ?? '';
  const why = message.slice(begin.length);
  return { code, why: hint === undefined ? why : `${why}; ${hint}` };
}

/** What was left out, as fields of JSON. Pure. */
export function leftOutJson({ file, session, why }: LeftOut): LeftOut {
  return { file, ...(session !== undefined && { session }), why };
}

/** How many files are named on stderr. */
const shownMax = 20;

/** Names what was left out on stderr. */
export function sayLeftOut(leftOut: readonly LeftOut[], status: (text: string) => void): void {
  for (const { file, session, why } of leftOut.slice(0, shownMax))
    status(`Left out ${session === undefined ? '' : `${pathText(session)} of `}${pathText(file)}: ${why}`);
  if (leftOut.length > shownMax) status(`… and ${counted(leftOut.length - shownMax, 'other file')}`);
}
