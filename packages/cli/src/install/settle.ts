/**
 * What the command writes into the files of other programs, after it has shown that: what is the same in `tape mcp
 * --install`, `tape completion --install` and `tape import --install`. This file asks and writes. `place.ts` is where a text
 * is, `json-value.ts` changes JSON and leaves the rest of it as it is, `own-command.ts` says how others start this command;
 * `job.ts` is an import that starts by itself, `hook.ts`, `systemd.ts`, `launchd.ts` and `cron.ts` are what starts one.
 * `start-aside.ts` is what a hook does, and `in-turn.ts` lets one of these run at a time.
 * Imports `config`, `question`, `context` and what lies below.
 */
import type { Context } from '../context.ts';
import { ConfigError } from '../errors/kinds.ts';
import { agrees } from '../question.ts';
import { CannotChange } from './cannot-change.ts';
import type { Place } from './place.ts';

/** A text that is to change, and how. */
export interface Part {
  readonly place: Place;
  /** @throws CannotChange for a text that would lose something */
  change(text: string): string | Promise<string>;
}

/** What is to happen, and how the user is asked. */
export interface Settling {
  readonly act: 'install' | 'uninstall';
  readonly parts: readonly Part[];
  /** Ends with what the user says yes to. */
  readonly question: string;
  /** Writes without a question. */
  readonly yes: boolean;
  /** Writes nothing, and does not ask. */
  readonly dryRun?: boolean;
  /** Called before the first text is written. */
  readonly onAgreed?: () => void;
}

/** What became of it; `shown`: nothing was written. */
export type Settled = 'shown' | 'installed' | 'removed' | 'unchanged';

/**
 * Changes some texts when the user agrees.
 * @throws ConfigError for a text that cannot be changed without a loss
 */
export async function settle(
  { act, parts, question, yes, dryRun = false, onAgreed }: Settling,
  context: Context,
): Promise<Settled> {
  const changed = async ({ change, place }: Part, text: string): Promise<string> => {
    try {
      return await change(text);
    } catch (error) {
      if (!(error instanceof CannotChange)) throw error;
      const { where } = place;
      throw new ConfigError('CLI_BAD_CONFIG', `cannot ${act} in '${where}': ${error.message}`, {
        data: { config: where },
      });
    }
  };
  const differing: Part[] = [];
  for (const part of parts) {
    const before = part.place.read();
    if ((await changed(part, before)) !== before) differing.push(part);
  }
  if (differing.length === 0) return 'unchanged';
  const isAgreed = !dryRun && (yes || (await agrees(question, context)));
  if (!isAgreed) return 'shown';
  onAgreed?.();
  for (const part of differing) await part.place.write(act, async (text) => await changed(part, text));
  return act === 'install' ? 'installed' : 'removed';
}
