import type { Permit, Session, SessionRules } from '@tapedeck/runtime';
import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { readJson } from '../input.ts';
import { modelOptions } from '../options/model.ts';
import { tabbed, table } from '../output/table.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const permissions: Verb = defineVerb({
  command: 'permissions <name> [tool] [input]',
  group: 'Look',
  paged: true,
  summary: 'Show the rules of a session, or what they say of a call',
  detail:
    'Without TOOL, one row for each rule that counts in the session: the session that it counts for, its scope, and the rule. The root comes ' +
    'first; of each session the last rule about a call decides, and of all sessions the strictest. With TOOL, the verdict on a call of ' +
    'it with INPUT, and what decided it: the claim, the rule, its scope and session; --json has all claims, and the offers that approve --remember takes. The tool must be one of the configuration, and INPUT fit its schema. Nothing runs, and nothing is written. Rules are no sandbox: they decide on what tools say that they do.',
  examples: [
    ['tape permissions main', 'Show the rules of main'],
    [`tape permissions main write_file '{"path":"src/a.ts"}'`, 'Show what they say of a call'],
  ],
  arguments: {
    name: 'Session',
    tool: 'Name of a tool',
    input: 'Its arguments: JSON (-, @FILE; default: {})',
  },
  options: { config: modelOptions.config },
  run: async (args, context) => {
    const { io } = context;
    const input = args.input === undefined ? {} : await readJson(args.input, 'INPUT', io);
    if (args.tool === '') throw new UsageError('cannot decide on a call: the name of its tool is empty');
    const config = await deckConfig(args, context, { onlyReads: true });
    return await context.reading(async (store) => {
      const { id } = needSession(store, args.name);
      const { openDeck } = await import('@tapedeck/runtime');
      const { workspaceOf } = await import('@tapedeck/runtime/internal');
      // Without its home the deck writes no list of what runs.
      const cwd = (await workspaceOf({ store, home: context.home.dir }, id)) ?? io.cwd;
      await using deck = await openDeck({ ...config, store, env: io.env, cwd });
      const session = await deck.find(id);
      if (session === undefined) throw new TypeError('the session is not in the store');
      if (args.tool === undefined) await showRules(session, context);
      else await showPermit(await session.permits({ tool: args.tool, input }), context);
      return 0;
    });
  },
});

async function showRules(session: Session, context: Context): Promise<void> {
  const { lineage, grants, servers } = await session.rules();
  const rows = rowsOf(session.name, { lineage, grants });
  const shown = [
    ...rows,
    ...(servers ?? []).map(({ server, callable }) => [
      session.name,
      'mcp',
      `${server}: ${callable ? 'tools of it may be called' : 'no tool of it may be called'}`,
    ]),
  ];
  const list = context.io.isTerminal
    ? table({ rows: shown, width: context.io.columns, names: [0] })
    : tabbed(shown);
  await context.answer({
    json: { session: session.name, lineage, grants, ...(servers !== undefined && { servers }) },
    quiet: rows.map((row) => row.at(-1)).join('\n'),
    human:
      rows.length > 0
        ? list
        : [`${session.name} has no rules: everything is allowed`, ...(shown.length > 0 ? [list] : [])].join(
            '\n',
          ),
  });
}

function rowsOf(name: string, { lineage, grants }: SessionRules): readonly (readonly string[])[] {
  return [
    ...lineage.flatMap(({ session, rules }) => rules.map(({ rule, scope }) => [session, scope, rule])),
    ...grants.map((rule) => [name, 'grant', rule]),
  ];
}

async function showPermit(permit: Permit, context: Context): Promise<void> {
  const { verdict, claim, rule, scope, session, fault, claims, offers } = permit;
  await context.answer({
    json: {
      verdict,
      claim,
      rule: rule ?? null,
      scope: scope ?? null,
      session: session ?? null,
      ...(fault !== undefined && { fault }),
      claims,
      offers,
    },
    quiet: verdict,
    human: `${verdict} ${claim}${reasonOf(permit)}`,
  });
}

/** Why it was decided so, behind the verdict and the claim. */
function reasonOf({ rule, scope, session, fault }: Permit): string {
  if (fault !== undefined) return `: ${fault}`;
  if (scope === 'tool') return ': the tool asks by itself';
  if (rule !== undefined) return ` by the rule: ${rule} (${scope} of ${session})`;
  return session === undefined ? ': there are no rules' : ` (no rule of ${session} is about it)`;
}
