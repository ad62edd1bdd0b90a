import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** The type of a record beside the conversation, as `progress/hook_progress`: what tells most of them apart. Pure. */
export function recordType({ type, subtype, attachment, data }: JsonObject): string {
  const within = [attachment, data].map((one) => (isObject(one) ? one.type : undefined));
  return [type, subtype, ...within].filter((one) => typeof one === 'string').join('/');
}
