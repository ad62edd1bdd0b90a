import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import type { ModelArgs } from '../options/model.ts';

/** Prints the system prompt that a run of the session would use now, and omitted files on stderr. */
export async function showInstructions(
  { store, session }: { readonly store: HomeStore; readonly session: SessionInfo },
  args: ModelArgs,
  context: Context,
): Promise<number> {
  const { io, home } = context;
  const config = await deckConfig(args, context, { onlyReads: true });
  const { openDeck } = await import('@tapedeck/runtime');
  await using deck = await openDeck({ ...config, store, env: io.env, cwd: io.cwd });
  const found = await deck.find(session.id);
  if (found === undefined) throw new TypeError(`session ${session.session} is in ${home.db}`);
  const { text, digest, sources, omitted } = await found.instructions({
    ...(args.model !== undefined && { model: args.model }),
  });
  await context.answer({
    json: { session: session.session, instructions: text ?? null, digest: digest ?? null, sources, omitted },
    quiet: digest ?? '',
    human: text ?? '',
  });
  if (text === undefined) context.status(`${session.session} has no system prompt`);
  for (const { path, why } of omitted) context.status(`Omitted '${path}': ${why}`);
  return 0;
}
