import type { Deck, StrayError } from '@tapedeck/runtime';
import type { TapeStore } from '@tapedeck/tape';
import type { LoadedConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { errorText } from '../errors/print.ts';
import { safe } from '../escape.ts';

/**
 * Opens a deck on the store of a home, in the working directory. Loads the runtime only when a verb needs it.
 */
export async function openDeckAt(
  config: LoadedConfig,
  store: TapeStore,
  { io, home, options }: Pick<Context, 'io' | 'home' | 'options'>,
): Promise<Deck> {
  const { openDeck } = await import('@tapedeck/runtime');
  return await openDeck({
    ...config,
    store,
    home: home.dir,
    env: io.env,
    cwd: io.cwd,
    onStrayError: (stray) => {
      if (!stray.isFatal) io.err(safe(`${strayLine(stray)}\n`));
      else io.err(errorText(stray.error, { asJson: options.json === true || options.jsonl === true }));
    },
  });
}

function strayLine({ message, session, tool }: StrayError): string {
  const text = message.replace(/\s*\n\s*/g, ' ');
  if (session === undefined) return `Warning: an error was not handled: ${text}`;
  return `Warning: tool '${tool}' of ${session} left an error that nothing handled: ${text}`;
}
