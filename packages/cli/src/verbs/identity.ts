import type { Deck } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import type { Identity, Linked } from '@tapedeck/tape/store';
import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { commandLine, jsonText, safe, shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { modelOptions } from '../options/model.ts';
import { counted } from '../output/counted.ts';
import { tabbed, table } from '../output/table.ts';
import { personaOption, personaWords, refOf } from '../session/identity.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { defineVerb, type Verb } from './verb.ts';

export const identity: Verb = defineVerb({
  command: 'identity [action] [key] [addresses..]',
  group: 'Change',
  paged: true,
  summary: 'Join the addresses of one person, or separate them',
  detail:
    'link joins addresses with the key of an entity: the session with the most turns gets the messages of all of them from now on. The others keep ' +
    'their history and their names, get nothing new, and are searched with it; nothing is merged. An address without a session becomes an alias. ' +
    'unlink reverses that, for some addresses or for all. list shows which session stands for which keys.',
  examples: [
    ['tape identity link dm:entity_mom dm:imessage:+1555 dm:gmail:mom@gmail.com', 'Say that both are mom'],
    ['tape identity', 'List the sessions that stand for several keys'],
    ['tape identity unlink dm:entity_mom dm:gmail:mom@gmail.com', 'Take a wrong address away'],
  ],
  arguments: {
    action: { describe: 'What to do (default: list)', choices: ['list', 'link', 'unlink'] },
    key: 'Key of the entity',
    addresses: 'Keys of its addresses (for unlink: all, if none is given)',
  },
  options: { persona: personaOption, config: modelOptions.config },
  run: async (args, context) => {
    const { action = 'list', key, addresses } = args;
    if (action === 'list') {
      if (key !== undefined) throw new UsageError('cannot list identities: there are too many arguments');
      return await list(args.persona, args, context);
    }
    if (key === undefined) throw new UsageError(`cannot ${action}: the key is missing`);
    if (action === 'link' && addresses.length === 0)
      throw new UsageError(`cannot link ${key}: an address is missing`);
    const config = await deckConfig(args, context);
    const act = async (store: HomeStore) => {
      await using deck = await openDeckAt(config, store, context);
      const change = { key, addresses, persona: args.persona };
      await (action === 'link' ? link : unlink)(deck, change, { store, context });
      return exit.done;
    };
    return action === 'link' ? await context.writing(act) : await context.changing(act);
  },
});

interface Change {
  readonly key: string;
  readonly addresses: readonly string[];
  readonly persona: string | undefined;
}

interface Place {
  readonly store: HomeStore;
  readonly context: Context;
}

async function link(
  deck: Deck,
  { key, addresses, persona }: Change,
  { store, context }: Place,
): Promise<void> {
  const options = persona === undefined ? {} : { persona };
  const before = (await deck.identities.list(options)).flatMap(namesOf);
  const left = await deck.identities.link(key, addresses, options);
  const { primary, quiet, changed, created } = left;
  const isNew = !before.includes(key);
  const added = addresses.filter((address) => !before.includes(address));
  const words = [key, ...(isNew ? [] : added)].map(shellWord).join(' ');
  const back = `tape identity unlink ${words}${personaWords(persona)}`;
  const ref = refOf(store, primary);
  const others = quiet.length === 0 ? '' : `, ${counted(quiet.length, 'other session')} quiet`;
  await context.answer({
    json: { ...identityJson(left), key, created, repeated: !changed },
    quiet: ref,
    human: changed
      ? context.inHome(
          `${primary.session} stands for ${key}${others}${isNew || added.length > 0 ? ` (undo with: ${back}${created ? `; ${commandLine('archive', [ref])}` : ''})` : ''}`,
        )
      : `${primary.session} stands for ${key} already: nothing to do`,
  });
}

async function unlink(
  deck: Deck,
  { key, addresses, persona }: Change,
  { store, context }: Place,
): Promise<void> {
  const options = persona === undefined ? {} : { persona };
  const before = (await deck.identities.list(options)).find((one) => namesOf(one).includes(key));
  const left = await deck.identities.unlink(key, addresses, options);
  const { primary, changed } = left;
  const gone =
    addresses.length > 0
      ? addresses
      : before === undefined
        ? []
        : namesOf(before).filter((name) => name !== key);
  const back = `tape identity link ${[key, ...gone].map(shellWord).join(' ')}${personaWords(persona)}`;
  await context.answer({
    json: { ...identityJson(left), key, created: false, repeated: !changed },
    quiet: refOf(store, primary),
    human: changed
      ? context.inHome(`Separated ${gone.join(', ')} from ${key} (undo with: ${back})`)
      : `${key} is linked with nothing: nothing to do`,
  });
}

async function list(
  persona: string | undefined,
  args: { readonly config?: string | false | undefined },
  context: Context,
): Promise<number> {
  const { io, options, status } = context;
  const config = await deckConfig(args, context, { onlyReads: true });
  return await context.reading(async (store) => {
    await using deck = await openDeckAt(config, store, context);
    const found = await deck.identities.list(persona === undefined ? {} : { persona });
    if (options.jsonl === true) for (const one of found) await io.out(`${jsonText(identityJson(one))}\n`);
    else if (options.json === true) await io.out(`${jsonText(found.map(identityJson))}\n`);
    else if (options.quiet === true)
      for (const { primary } of found) await io.out(`${safe(refOf(store, primary))}\n`);
    else if (found.length === 0) status('No session stands for another key');
    else {
      const rows = found.map(({ primary, quiet, keys }) => [
        primary.tape,
        [...keys, ...quiet.map(({ session }) => session)].join(' '),
      ]);
      await io.out(`${io.isTerminal ? table({ rows, width: io.columns, names: [0] }) : tabbed(rows)}\n`);
    }
    return exit.done;
  });
}

/** All keys that lead to a session. */
function namesOf({ primary, quiet, keys }: Identity): readonly string[] {
  return [...keys, primary.session, ...quiet.map(({ session }) => session)];
}

function identityJson({ primary, quiet, keys }: Identity | Linked): object {
  return {
    session: primary.session,
    id: primary.id,
    tape: primary.tape,
    keys,
    quiet: quiet.map(({ session, id }) => ({ session, id })),
  };
}
