import type { Json } from '@tapedeck/tape';
import type { Finish } from './run.ts';
import type { Usage } from './usage.ts';

/**
 * What happens during a run, in order (X11-X22). Every event that stands for an entry comes after the entry is
 * committed; texts come as they arrive.
 */
export type SessionEvent =
  | { readonly type: 'run-started'; readonly run: string; readonly session: string }
  /** Somebody left something for this session: it is done at the next settled point. */
  | { readonly type: 'inbox-waiting'; readonly items: number }
  | { readonly type: 'content-chunk'; readonly text: string }
  | { readonly type: 'reasoning-chunk'; readonly text: string }
  | {
      readonly type: 'tool-detected';
      readonly toolCallId: string;
      readonly name: string;
      readonly input: Json;
    }
  | { readonly type: 'tool-started'; readonly toolCallId: string; readonly name: string }
  | {
      readonly type: 'tool-completed';
      readonly toolCallId: string;
      readonly name: string;
      readonly success: boolean;
      readonly output: Json;
    }
  | {
      readonly type: 'iteration-completed';
      readonly iteration: number;
      readonly usage: Usage;
      readonly willContinue: boolean;
    }
  | { readonly type: 'session-completed'; readonly finish: Finish; readonly haltedAtLimit: boolean }
  | { readonly type: 'session-cancelled'; readonly reason: string };
