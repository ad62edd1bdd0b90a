import type { ApprovalRequest, DeckConfig } from '../config/config.ts';
import type { CallRequest, Decision, OpenCall } from '../stream/call.ts';
import type { Permit } from '../terms/permits.ts';
import { rememberFault } from '../tools/open-batch.ts';

/** What a request for approval says. A call that was recorded elsewhere is approved alone. */
export function requestOf(
  { verdict, claims, offers, askedFor, toolOffers }: Permit,
  call: OpenCall,
): CallRequest {
  if (call.elsewhere === true) return { claims, offers: [] };
  const more = askedFor.length > 0 && { askedFor };
  return { claims, offers: verdict === 'ask' ? offers : toolOffers, ...more };
}

/** Whether a call would do something else than what a person has approved: a link leads elsewhere now. */
export function hasChanged({ claims: approved }: OpenCall, { claims }: Permit): boolean {
  return approved !== undefined && approved.join('\n') !== claims.join('\n');
}

/** Calls `onApproval`. Undefined: the call stays pending. What it cannot remember denies the call. */
export async function askProgram(
  onApproval: DeckConfig['onApproval'],
  request: ApprovalRequest,
): Promise<Decision | undefined> {
  const decision = await onApproval?.(request);
  if (decision === undefined) return undefined;
  const { approved, reason, remember } = decision;
  const fault = rememberFault(remember, request.offers);
  if (fault !== undefined) return { approved: false, reason: fault };
  return {
    approved: approved === true,
    ...(typeof reason === 'string' && { reason }),
    ...(remember !== undefined && { remember: [...remember] }),
  };
}
