import type { Meta } from '@tapedeck/tape';
import { UsageError } from '../errors/kinds.ts';

/** Who wrote a message, and where. */
export interface AuthorArgs {
  readonly sender?: string | undefined;
  readonly senderName?: string | undefined;
  readonly channel?: string | undefined;
  readonly messageId?: string | undefined;
}

/** The options for the author of a message. */
export const authorOptions = {
  sender: {
    type: 'string',
    describe: 'Id of who wrote it: the model sees it where several people wrote one message',
  },
  'sender-name': { type: 'string', describe: 'Name of the sender, for the model' },
  channel: { type: 'string', describe: 'Channel that it came through' },
  'message-id': { type: 'string', describe: 'Id of the message in its channel' },
} as const;

/**
 * The author of a message, as its standard meta fields; none without these options.
 * @throws UsageError for an empty text
 */
export function authorIn({ sender, senderName, channel, messageId }: AuthorArgs): { readonly meta?: Meta } {
  const given = { sender, sender_name: senderName, channel, message_id: messageId };
  const meta: Record<string, string> = {};
  for (const [field, value] of Object.entries(given)) {
    if (value === '') throw new UsageError(`cannot use --${field.replace('_', '-')}: it is empty`);
    if (value !== undefined) meta[field] = value;
  }
  return Object.keys(meta).length === 0 ? {} : { meta };
}
