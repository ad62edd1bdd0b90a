/** One item of an output that is not only text. */
export type Item =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'file';
      readonly mediaType: string;
      readonly data: { readonly type: 'data'; readonly data: string };
    };

/** A tool output in the AI SDK's form. */
export type Output =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'content'; readonly value: readonly Item[] };

/** The result of a call for which the file has none. */
export const interrupted: Output = { type: 'error-text', value: 'interrupted' };

/** Whether a result stands for one that its source does not have, by its key. Pure. */
export function isStandIn(key: string): boolean {
  return key.endsWith(':interrupted');
}
