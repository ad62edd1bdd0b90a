import type { Entry, HomeStore, Seq } from '@tapedeck/tape';
import { actNames, actOf } from '@tapedeck/tape/internal';

/** The act that a rewind undoes. */
export interface Undoes {
  readonly act: keyof typeof actNames;
  readonly seq: Seq;
}

/** Finds the act that a rewind undoes: what the rewind hides begins with it. Undefined for a rewind to a message. */
export function undoesOf(
  store: Pick<HomeStore, 'entries'>,
  id: string,
  { seq, ref = seq }: Pick<Entry, 'seq' | 'ref'>,
): Undoes | undefined {
  if (ref + 1 >= seq) return undefined;
  const [first] = store.entries.read(id, { from: ref + 1, to: ref + 1 });
  const act = first === undefined ? undefined : actOf(first);
  return act === undefined ? undefined : { act, seq: ref + 1 };
}

/** What a rewind does, in words. */
export function rewindText(to: Seq, undoes: Undoes | undefined): string {
  return undoes === undefined ? `to @${to}` : `undoes ${actNames[undoes.act]} @${undoes.seq}`;
}
