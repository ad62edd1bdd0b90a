import type { Draft } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import type { MergeDraft } from '../merge/plan.ts';
import type { RunItem } from '../tape/post.ts';

/** What a process that does not own a session requests of it: an append, a merge, or input to a run. */
export type InboxBody =
  | { readonly type: 'append'; readonly drafts: readonly Draft[] }
  | { readonly type: 'merge'; readonly draft: MergeDraft }
  | RunItem;

const isText = (value: unknown): boolean => typeof value === 'string';

/** Whether the fields of an item are there, by its type. */
const isComplete: Readonly<Record<InboxBody['type'], (body: Readonly<Record<string, unknown>>) => boolean>> =
  {
    append: ({ drafts }) => areDrafts(drafts),
    input: ({ drafts }) => areDrafts(drafts),
    merge: ({ draft }) => isObject(draft) && isText(draft.child),
    answer: ({ toolCallId }) => isText(toolCallId),
    abort: ({ owner, reason }) => isText(owner) && isText(reason),
  };

function areDrafts(drafts: unknown): boolean {
  return Array.isArray(drafts) && drafts.every((draft) => isObject(draft) && isText(draft.kind));
}

/** Returns why a stored text is no body of an inbox item; undefined for one that is. Pure. */
export function bodyFault(text: string): string | undefined {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  if (!isObject(body) || typeof body.type !== 'string') return 'has no type';
  // An item that only another version knows waits for it.
  if (!Object.hasOwn(isComplete, body.type)) return undefined;
  return isComplete[body.type as InboxBody['type']](body) ? undefined : `is no complete ${body.type}`;
}
