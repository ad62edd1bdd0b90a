import type { Run } from '@tapedeck/runtime';
import { UsageError } from '../errors/kinds.ts';
import { commandLine, safe } from '../escape.ts';
import type { MaskedIo } from '../masked-io.ts';
import { forkedLine } from '../output/forked.ts';
import { reportForks, rewoundLine, undoneLine } from '../output/rewound.ts';
import { offeredPoints, offeredSessions } from '../session/offered.ts';
import { needSession, pointIn } from '../session/place.ts';
import { lastPrompts } from './last-prompts.ts';
import { infoOf, type Talk, turnTo } from './talk.ts';

/** What a line leads to. */
export interface Next {
  /** Starts the run that the line asks for. */
  readonly start?: () => Run;
  /** A text for the user to edit. */
  readonly text?: string;
  /** The user leaves. */
  readonly leaves?: true;
}

/** Something that a line that begins with a slash can ask for. */
export interface Command {
  readonly name: string;
  /** What may follow it. */
  readonly takes?: string;
  readonly does: string;
  /** Other words for it. */
  readonly also?: readonly string[];
  readonly offers?: (talk: Talk, text: string) => readonly string[];
  run(talk: Talk, words: readonly string[]): Promise<Next> | Next;
}

/**
 * Runs another verb on the session, with the output of the conversation, or another one. It finds the home as the chat did:
 * its hints name one that the user has named, and no other.
 */
async function verb(talk: Talk, words: readonly string[], onto?: (io: MaskedIo) => MaskedIo): Promise<Next> {
  const { home, options, tape } = talk.context;
  const line = [
    ...words,
    ...(options.home === undefined ? [] : ['--home', home.server?.given ?? options.home]),
    ...(home.base === undefined ? [] : ['--base', home.base]),
    ...(typeof options.color === 'string' ? ['--color', options.color] : []),
    ...(options.color === false ? ['--color', 'never'] : []),
  ];
  await talk.stoppable(async (io) => await tape(line, onto?.(io) ?? io));
  return {};
}

/** Characters of a prompt that a line can hold. */
const editedMax = 16_000;

const pointsOf = ({ store, session }: Talk) => offeredPoints(store, session.id).map((name) => `@${name}`);
const promptsOf = (talk: Talk) => lastPrompts(talk, 10).map(({ seq }) => `@${seq}`);

/** All commands, in the order of `/help`. */
export const commands: readonly Command[] = [
  {
    name: 'help',
    does: 'List the commands',
    run: async ({ context: { io } }) => {
      await io.out(helpText());
      return {};
    },
  },
  {
    name: 'fork',
    takes: '[NAME]',
    does: 'Fork the session here, and go on in the fork',
    also: ['branch', 'checkout'],
    run: async (talk, [name]) => {
      const { store, session, context } = talk;
      const { branchSession } = await import('@tapedeck/runtime');
      const forked = await branchSession(store, infoOf(talk), name === undefined ? {} : { name });
      const next = `Return with: /switch ${session.name}`;
      await context.io.out(`${safe(forkedLine(forked, { done: 'Forked', next }))}\n`);
      await turnTo(talk, forked.session);
      talk.seen = infoOf(talk).head;
      return {};
    },
  },
  {
    name: 'switch',
    takes: 'SESSION',
    does: 'Go on in another session',
    also: ['back', 'session', 'open'],
    offers: ({ store }, text) => offeredSessions(store, text),
    run: async (talk, [name]) => {
      await turnTo(talk, needSession(talk.store, needed(name, 'switch', 'a session')).session);
      return {};
    },
  },
  {
    name: 'rewind',
    takes: '[POINT]',
    does: 'Rewind to before a prompt (default: the last), and edit it',
    also: ['edit', 'reset'],
    offers: (talk) => promptsOf(talk),
    run: async (talk, [point]) => {
      const { session, store, context } = talk;
      const [last] = lastPrompts(talk, 1);
      if (point === undefined && last === undefined)
        throw new UsageError(`cannot rewind '${session.name}': it has no prompt`);
      const to =
        point === undefined ? (last?.seq ?? 0) : pointIn(store, infoOf(talk), point.replace(/^@/, ''));
      const rewound = await session.rewind(to, { mode: 'edit' });
      for (const warning of rewound.warnings) context.status(`Warning: ${warning}`);
      reportForks(rewound, context);
      await context.io.out(`${safe(rewoundLine(rewound, `/undo @${rewound.seq}`))}\n`);
      talk.seen = infoOf(talk).head;
      if (rewound.text.length <= editedMax) return { text: rewound.text };
      context.status(
        context.inHome(
          `Its text is too long to be edited here: ${commandLine('show', [`${session.name}@${rewound.message}`])}`,
        ),
      );
      return {};
    },
  },
  {
    name: 'undo',
    takes: '[POINT]',
    does: 'Undo the newest rewind, compaction, anchor or merge, or that at POINT',
    also: ['redo', 'unrewind', 'revert'],
    run: async (talk, [point]) => {
      const { session, store, context } = talk;
      const at = point === undefined ? {} : { at: pointIn(store, infoOf(talk), point.replace(/^@/, '')) };
      const undone = await session.undo(at);
      reportForks(undone, context);
      await context.io.out(`${safe(undoneLine(undone, `/undo @${undone.seq}`))}\n`);
      talk.seen = infoOf(talk).head;
      return {};
    },
  },
  {
    name: 'anchor',
    takes: 'NAME',
    does: 'Mark this point with a name',
    also: ['save', 'mark', 'tag', 'bookmark', 'commit'],
    run: async (talk, [name, ...options]) => {
      const { session, context } = talk;
      const given = needed(name, 'anchor', 'a name');
      let place = '';
      const out = async (text: string | Uint8Array) => {
        place += text;
      };
      const kept = (io: MaskedIo) => Object.assign(Object.create(io) as MaskedIo, { out });
      const next = await verb(talk, ['anchor', session.id, given, ...options, '--quiet'], kept);
      const [, seq] = /@(\d+)\n$/.exec(place) ?? [];
      if (seq !== undefined)
        await context.io.out(
          `${safe(`Anchored ${given} at ${session.name}@${seq}`)} (undo with: /undo @${seq})\n`,
        );
      talk.seen = infoOf(talk).head;
      return next;
    },
  },
  {
    name: 'log',
    takes: '[OPTIONS]',
    does: 'Show the last 20 items, or what options of tape log select',
    also: ['history', 'list'],
    run: async (talk, options) =>
      await verb(talk, ['log', talk.session.id, ...(options.length === 0 ? ['-n', '20'] : options)]),
  },
  {
    name: 'show',
    takes: '[POINT]',
    does: 'Show an entry in full, by default the last one',
    also: ['cat'],
    offers: (talk) => pointsOf(talk),
    run: async (talk, [point = 'head', ...options]) =>
      await verb(talk, ['show', `${talk.session.id}@${point.replace(/^@/, '')}`, ...options]),
  },
  {
    name: 'view',
    does: 'Show what the model sees',
    also: ['context'],
    run: async (talk, options) => await verb(talk, ['view', talk.session.id, ...options]),
  },
  {
    name: 'model',
    takes: '[SPEC]',
    does: 'Name the model of the next prompts, or show it',
    run: async (talk, [model]) => {
      const { context, store, session } = talk;
      const { assertModel, carriedModel } = await import('@tapedeck/runtime/internal');
      if (model === undefined) {
        const used = talk.named.model ?? (await carriedModel(store, session.id)) ?? talk.configured;
        await context.io.out(`${safe(typeof used === 'string' ? used : (used?.modelId ?? 'no model'))}\n`);
        return {};
      }
      await assertModel(model, { env: context.io.env });
      talk.named = { ...talk.named, model };
      await context.io.out(`${safe(`The next prompt uses ${model}, and the session keeps it`)}\n`);
      return {};
    },
  },
  {
    name: 'continue',
    does: 'Continue a run that failed or was stopped',
    also: ['retry', 'resume', 'run'],
    run: ({ session, named }) => ({ start: () => session.run(undefined, named) }),
  },
  {
    name: 'quit',
    does: 'Leave; Ctrl-D does it, too',
    also: ['exit', 'q', 'bye'],
    run: () => ({ leaves: true }),
  },
];

function needed(word: string | undefined, command: string, what: string): string {
  if (word !== undefined) return word;
  throw new UsageError(`cannot run /${command}: it needs ${what}`, { hint: 'see: /help' });
}

function helpText(): string {
  const terms = commands.map(({ name, takes, does }) => [
    `/${name}${takes === undefined ? '' : ` ${takes}`}`,
    does,
  ]);
  const rows = terms.map(([term = '', does]) => `${term.padEnd(18)}${does}\n`);
  return [
    ...rows,
    '\n// begins a prompt with a slash. A backslash at the end continues a line, and a\n',
    'paste of several lines is one prompt. Tab completes. Ctrl-C stops a turn.\n',
  ].join('');
}
