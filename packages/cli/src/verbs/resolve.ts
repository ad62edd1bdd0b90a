import type { Deck, IncomingDelivery, RoutePreview } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { deckConfig } from '../config/deck.ts';
import { UsageError } from '../errors/kinds.ts';
import { commandLine, shellWord } from '../escape.ts';
import { readJson } from '../input.ts';
import { modelOptions } from '../options/model.ts';
import { personaOption, personaWords, refOf } from '../session/identity.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { userOf } from '../user.ts';
import { defineVerb, type Verb } from './verb.ts';

export const resolve: Verb = defineVerb({
  command: 'resolve [key]',
  group: 'Start',
  summary: 'Find or create the session of a key, or of a delivery',
  detail:
    'A key says who sends a message: dm:ENTITY, dm:CHANNEL:SENDER, group:CHANNEL:PEER[:thread:ID], worker:ULID or system:PURPOSE; a delivery ' +
    'gets its key from the routes in config.yaml of the home. The session has the key as its name or stands for it; that of the address of ' +
    'a sender who is known now is promoted; else one is created, with the instructions, the model, the tools and the rules of its persona. ' +
    'Repeated, the command finds the same session.',
  examples: [
    ['tape resolve dm:imessage:+1555', 'Find or create the session of a sender'],
    [
      'tape resolve dm:entity_mom --address dm:imessage:+1555',
      'Find the session of mom, who wrote from this address before',
    ],
  ],
  arguments: { key: 'Session key' },
  options: {
    delivery: {
      type: 'string',
      takes: 'JSON',
      describe: 'A delivery in the place of a key: {"principal": …, "delivery": …} (-, @FILE)',
    },
    address: { type: 'string', takes: 'KEY', describe: 'Key that the sender has without an identity' },
    persona: personaOption,
    'dry-run': { type: 'boolean', describe: 'Say where it leads, and write nothing' },
    config: modelOptions.config,
  },
  conflicts: { delivery: ['key', 'address', 'persona'] },
  run: async (args, context) => {
    const { key, dryRun = false } = args;
    const given =
      args.delivery === undefined ? undefined : await readJson(args.delivery, '--delivery', context.io);
    if ((key === undefined) === (given === undefined))
      throw new UsageError('cannot resolve: give a key, or a delivery with --delivery');
    const config = await deckConfig(args, context, { onlyReads: dryRun });
    const options = {
      ...(args.address !== undefined && { address: args.address }),
      ...(args.persona !== undefined && { persona: args.persona }),
    };
    const of = key ?? (given as unknown as IncomingDelivery);
    const act = async (store: HomeStore) => {
      await using deck = await openDeckAt(config, store, context);
      const found = dryRun ? await deck.identities.preview(of, options) : await done(deck, { of, options });
      const { session } = found;
      if (session !== undefined) userOf(store)?.uses(session.id);
      await context.answer({
        json: {
          ...{ session: session?.session ?? null, id: session?.id ?? null, tape: session?.tape ?? null },
          key: found.key,
          persona: found.persona ?? null,
          route: found.route ?? null,
          how: found.how,
          created: !dryRun && found.how === 'created',
          lifecycle: session?.lifecycle ?? null,
          head: session?.head ?? null,
          message_count: session?.messageCount ?? null,
          ...(dryRun && { dry_run: true }),
        },
        quiet: session === undefined ? '' : refOf(store, session),
        human: context.inHome(humanText(found, { store, dryRun })),
      });
      return 0;
    };
    return dryRun ? await context.reading(act) : await context.writing(act);
  },
});

/** Resolves a key or a delivery. */
async function done(
  deck: Deck,
  {
    of,
    options,
  }: { readonly of: string | IncomingDelivery; readonly options: { readonly persona?: string } },
): Promise<RoutePreview> {
  const routed = typeof of === 'string' ? undefined : await deck.route(of);
  const { session, key, persona, how } = routed ?? (await deck.identities.resolve(String(of), options));
  return {
    ...(routed !== undefined && { route: routed.route }),
    key,
    ...(persona !== undefined && { persona }),
    how,
    session: await session.info(),
  };
}

function humanText(
  { session, key, how, persona }: RoutePreview,
  { store, dryRun }: { readonly store: HomeStore; readonly dryRun: boolean },
): string {
  if (session === undefined) return `${key} has no session: one would be created`;
  const ref = refOf(store, session);
  const named = titleOf(session, ref);
  if (how === 'created') return `Created ${named} (undo with: ${commandLine('archive', [ref])})`;
  if (how === 'direct') return `${key} is ${named}`;
  if (how === 'alias') return `${key} leads to ${named}`;
  return dryRun
    ? `${key} would be promoted to ${named}`
    : `Promoted: ${key} leads to ${named} from now on (undo with: tape identity unlink ${shellWord(key)}${personaWords(persona)})`;
}

/** A session, and its tape where that is of another realm. */
function titleOf({ session, tape }: SessionInfo, ref: string): string {
  return ref === session ? session : `${tape} (${ref})`;
}
