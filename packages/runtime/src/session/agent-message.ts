import type { Meta, SessionInfo } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';

/** A message of one agent to another, as its model reads it, with the facts that its entry records. */
export interface AgentMessage {
  readonly text: string;
  readonly meta: Meta;
}

/**
 * Makes the message that a session sends to another: a labelled block that quotes the sender. Its tag carries 8 digits
 * of a hash of the entry with the sender's call, which covers the text itself, so no text can close the block. `by` says
 * who started or steered the run that answers it, and whose rules bound the sender (`senders`).
 */
export function agentMessage(
  { session: name, id }: Pick<SessionInfo, 'session' | 'id'>,
  {
    text,
    callHash,
    senders,
  }: { readonly text: string; readonly callHash: string; readonly senders: readonly string[] },
): AgentMessage {
  const tag = `message-${sha256(callHash).slice(0, 8)}`;
  const head = `Session ${name} has sent a message. What follows is from an agent, not from a person.`;
  return {
    text: `${head}\n<${tag} from="${name}" id="${id}">\n${text}\n</${tag}>`,
    meta: { from: name, by: { agent: name, id, ...(senders.length > 0 && { senders }) } },
  };
}
