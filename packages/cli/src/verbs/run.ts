import type { RunResult } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import { answerAtTerminal } from '../chat/turn.ts';
import { deckConfig, getModelFor } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { readWords } from '../input.ts';
import { authorIn, authorOptions } from '../options/author.ts';
import { createOptions } from '../options/create.ts';
import { namedIn, runOptions } from '../options/model.ts';
import { childLines } from '../output/child-lines.ts';
import { exitOf, type Face, resultJson, statusFace } from '../output/run.ts';
import { attach } from '../session/attach.ts';
import { printAll } from '../session/background.ts';
import { ensure } from '../session/ensure.ts';
import { refOf } from '../session/identity.ts';
import { newestIn } from '../session/listing.ts';
import { meantSession } from '../session/meant.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { offerDirectory } from '../session/recorded-directory.ts';
import { roleOf } from '../transcript/wanted.ts';
import { defineVerb, type Verb } from './verb.ts';

export const run: Verb = defineVerb({
  command: 'run [name] [prompt..]',
  group: 'Run',
  summary: 'Send a prompt to a session and follow its run',
  detail:
    'Without a prompt, runs the messages in the inbox, or else continues what is unfinished: a run that was cut off, stopped or ' +
    'failed, open calls, a task that has not begun, a message without an answer. When nothing is, it calls no model, writes ' +
    'nothing, says so, and exits 0. With --continue all words are the prompt: it runs the session that sessions --here lists first. --attach follows the active ' +
    'run of another process. Prints the answer on stdout, everything else on stderr. Answers messages that arrive during the ' +
    'run, and results of background children, before it ends. --jsonl prints a line when a child of the run starts, progresses, ' +
    'waits or ends, and at the end one for the run. A prompt denies pending calls as superseded, and says so: answer them before with approve. ' +
    'At a terminal it asks about calls that need approval; elsewhere they wait, unless --yes is given. Exits 1 if the run failed, and 6 if it waits for an answer.',
  examples: [
    [
      'tape run main "Plan the release" --model openai-compatible/gpt-oss',
      'Run with OPENAI_BASE_URL and OPENAI_API_KEY',
    ],
    ['tape run main Plan the release --model script:answers.json', 'Run with scripted answers, offline'],
    ['tape run --continue "And the tests?"', 'Go on in the session that was last used in this directory'],
  ],
  arguments: {
    name: 'Session; created if it does not exist; left out with --continue',
    prompt: 'Message (- for stdin, @FILE); its words need no quotes',
  },
  options: {
    ...createOptions,
    ...runOptions,
    ...authorOptions,
    continue: {
      type: 'boolean',
      describe: 'Run the session with the newest message of those that began in this directory or below it',
    },
    attach: { type: 'boolean', describe: 'Follow the active run, or show the last one, and write nothing' },
  },
  conflicts: { continue: ['new'] },
  run: async (args, context) => {
    const { name, prompt } = await meantOf(args, context);
    const { io, options } = context;
    if (args.attach === true) {
      if (prompt.length > 0) throw new UsageError('cannot attach with a prompt: use tape send');
      return await context.reading(
        async (store) => await attach(store, needSession(store, name).session, context),
      );
    }
    const author = authorIn(args);
    const config = await deckConfig(args, context);
    await getModelFor({ name, creates: prompt.length > 0, isNew: args.new }, config, context);
    const input = prompt.length === 0 ? undefined : await readWords(prompt, io);
    if (input !== undefined && input.trim() === '') throw new UsageError('cannot run: the prompt is empty');
    const { assertModel } = await import('@tapedeck/runtime/internal');
    if (config.model !== undefined) await assertModel(config.model, { env: io.env, from: config.modelFrom });
    // Without a prompt the session must exist.
    const opening = input === undefined ? context.changing : context.writing;
    return await opening(async (store) => {
      const meant =
        input === undefined ? name : await meantSession(store, name, { isNew: args.new, context });
      const session =
        input === undefined ? refOf(store, needSession(store, name)) : ensure(store, meant, context);
      offerDirectory(store, session, context);
      await using deck = await openDeckAt(config, store, context);
      const handle = await deck.session(session);
      const first = handle.run(input, {
        ...namedIn(args),
        ...author,
        signal: io.signal,
      });
      const shown = statusFace(context);
      const lines = childLines(context);
      const face: Face = {
        ...shown,
        event: async (event) => {
          await lines(event);
          await shown.event(event);
        },
      };
      const [own, ...others] = await printAll(first, { deck, session: handle, face }, context);
      if (own === undefined) throw new TypeError('a run that was printed has a result');
      const last = others.at(-1) ?? own;
      const answered =
        last.result.finish === 'waiting' && !io.interrupted
          ? await answerAtTerminal({ store, deck, session: handle, named: namedIn(args) }, context)
          : undefined;
      if (options.json === true || options.jsonl === true) {
        const rest = others.map(({ result }) => result);
        await context.print(resultJson(own.result, rest));
      }
      if (input !== undefined) sayWayBack(store, own.result, context);
      return io.interrupted ? exit.interrupted : exitOf(answered ?? own.result.finish);
    });
  },
});

/** The session and the prompt of a line: with --continue all of its words are the prompt. */
async function meantOf(
  {
    name,
    prompt,
    continue: continues,
  }: {
    readonly name: string | undefined;
    readonly prompt: readonly string[];
    readonly continue: boolean | undefined;
  },
  { io, reading, status }: Context,
): Promise<{ readonly name: string; readonly prompt: readonly string[] }> {
  if (continues !== true) {
    if (name === undefined)
      throw new UsageError('cannot run: no session is named', {
        hint: 'name one, or run the last one of this directory with: tape run --continue',
      });
    return { name, prompt };
  }
  const found = await reading(async (store) => newestIn(store, io.cwd));
  if (found === undefined)
    throw new NotFoundError(`cannot continue: no session began to run in '${io.cwd}' or below it`, {
      directory: io.cwd,
    });
  status(`Continuing ${found.session}`);
  return { name: found.session, prompt: name === undefined ? prompt : [name, ...prompt] };
}

/** Says where a run is, and how to take it back: by a rewind to before the prompt that began it. */
function sayWayBack(
  store: HomeStore,
  { session, from, to }: RunResult,
  { options, status, inHome }: Context,
): void {
  if (options.json === true || options.jsonl === true) return;
  const [first] = store.entries.read(session, { from, to: from });
  if (first !== undefined && roleOf(first) === 'user')
    status(inHome(`${session}@${from}-${to} (undo with: ${commandLine('rewind', [`${session}@${from}`])})`));
}
