/**
 * Options that several verbs share, one file for each group: how verbs declare them, and their values in the form
 * of the library. `inherit.ts`: what a child inherits. Imports `context`, `input` and `errors`.
 */
import type { Inherit } from '@tapedeck/tape';
import { UsageError } from '../errors/kinds.ts';
import { sinceOf } from '../input.ts';

export interface InheritArgs {
  readonly inherit?: string | undefined;
  readonly since?: string | undefined;
  readonly last?: number | undefined;
  readonly fresh?: boolean | undefined;
  readonly from?: string | undefined;
}

/** Names of the options that select what a child inherits. */
export const inheritNames = ['inherit', 'since', 'last', 'fresh', 'from'] as const;

/** The options of verbs that fork, for what a child inherits. */
export const inheritOptions = {
  inherit: {
    type: 'string',
    choices: ['all', 'nothing'],
    describe: 'Inherit all entries of the parent (default), or none',
  },
  since: { type: 'string', describe: 'Inherit the entries after this anchor or @SEQ only' },
  last: { type: 'number', describe: 'Inherit the last N messages only, and the entries between them' },
} as const;

/** Earlier names of those options, which work and are in no help text. */
export const earlierInheritOptions = {
  fresh: { type: 'boolean', hidden: true },
  from: { type: 'string', hidden: true },
} as const;

/**
 * Those options in the form of the library; undefined if none is given.
 * @param hintFrom the hint for a position after `--from`, which names an anchor; for verbs that have that option
 * @throws UsageError
 */
export function inheritIn(args: InheritArgs, hintFrom: (at: string) => string = String): Inherit | undefined {
  const [first, second] = inheritNames.filter((name) => args[name] !== undefined && args[name] !== false);
  if (first !== undefined && second !== undefined)
    throw new UsageError(`cannot use --${first} with --${second}: each selects what a child inherits`);
  const { inherit, last, fresh, from } = args;
  if (from !== undefined && /^@?\d+$/.test(from))
    throw new UsageError(
      `cannot use --from ${from}: a position can mean where the inherited part begins or ends`,
      { hint: hintFrom(from) },
    );
  const since = args.since ?? from;
  if (since !== undefined) return { since: sinceOf(since) };
  if (last === 0) throw new UsageError('cannot use --last 0: it must be a whole number from 1');
  if (last !== undefined) return { last };
  return fresh === true || inherit === 'nothing' ? 'nothing' : inherit === 'all' ? 'all' : undefined;
}
