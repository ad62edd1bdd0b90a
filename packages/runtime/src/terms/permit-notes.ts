import { type Draft, note } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';
import type { Decision, OpenCall } from '../stream/call.ts';
import { grantedNote, type Permit } from './permits.ts';

/** Records a decision on a call, once, unless rules simply allow it. */
export async function recordPermit(
  context: { readonly run: string; readonly append: (drafts: readonly Draft[]) => Promise<unknown> },
  { toolCallId, toolName }: OpenCall,
  { verdict, claim, rule, scope, session, fault }: Permit,
): Promise<void> {
  if (verdict === 'allow' && scope !== 'grant') return;
  const payload = {
    toolCallId,
    toolName,
    verdict,
    claim,
    ...(rule !== undefined && { rule, scope }),
    ...(session !== undefined && { session }),
    ...(fault !== undefined && { fault }),
  };
  const key = `permission:${toolCallId}:${sha256(JSON.stringify(payload)).slice(0, 16)}`;
  await context.append([{ ...note('permission/decided', payload, { run: context.run }), key }]);
}

/** Why a call is refused, for the model. */
export function refusedBy({ claim, rule, fault, session }: Permit): string {
  if (fault !== undefined) return `${claim} is not allowed: ${fault}`;
  return rule === undefined
    ? `${claim} is not allowed`
    : `${claim} is not allowed in '${session}', by the rule: ${rule}`;
}

/** The notes about a decision that counts for good. */
export function grantNotes(
  toolCallId: string,
  { approved, remember = [] }: Pick<Decision, 'approved' | 'remember'>,
): readonly Draft[] {
  const verdict = approved ? 'allow' : 'deny';
  return remember.map((pattern) => note(grantedNote, { rule: `${verdict} ${pattern}`, toolCallId }));
}
