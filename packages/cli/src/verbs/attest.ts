import { createPrivateKey, randomBytes } from 'node:crypto';
import { linkSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { systemFault } from '../errors/system-fault.ts';
import { stdinWord } from '../input.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import type { ShowProgress } from '../progress-line.ts';
import { readKey } from '../session/key-file.ts';
import { defineVerb, type Verb } from './verb.ts';

export const attest: Verb = defineVerb({
  command: 'attest',
  group: 'Trust',
  summary: 'Write down the heads of all sessions, to compare with later',
  detail:
    'Writes one line for each session, whatever its realm, with the position and the hash of its last entry, and one for the graph file. Keep the ' +
    'file where those who can write the home cannot. tape check --against FILE then proves that tapes have only grown since. ' +
    'Signs it when a key is given. Does not verify the home.',
  examples: [
    ['tape attest -o heads.txt', 'Write the heads to a new file'],
    ['tape attest --key key.pem', 'Print them, signed with an Ed25519 key'],
  ],
  options: {
    output: { type: 'string', takes: 'FILE', alias: 'o', describe: 'New file (-, default: stdout)' },
    key: { type: 'string', takes: 'FILE', describe: 'Sign with the private Ed25519 key in FILE (PEM)' },
  },
  run: async ({ output: given, key }, context) => {
    const { io, reading, answer, options } = context;
    const output = given === stdinWord || given === '-' ? undefined : given;
    const signer = key === undefined ? undefined : readKey(resolve(io.cwd, key), createPrivateKey);
    const { attest: attestStore } = await import('@tapedeck/runtime');
    return await reading(async (store) => {
      const { lines, count } = attestStore(store, signer === undefined ? {} : { key: signer });
      const isJson = options.json === true || options.jsonl === true;
      if (output === undefined && !isJson) {
        await following(store, lines, context, async (followed) => {
          for await (const line of followed) await io.out(line);
        });
        return 0;
      }
      const signed = signer !== undefined;
      if (output === undefined) {
        const texts = await following(store, lines, context, (followed) => Array.fromAsync(followed));
        const text = texts.join('');
        await answer({ json: { ...totalsOf(count()), signed, text }, human: text });
        return 0;
      }
      const file = resolve(io.cwd, output);
      await following(store, lines, context, (followed) => writeNew(file, followed));
      const { sessions, graph } = totalsOf(count());
      await answer({
        json: { file, sessions, graph, signed },
        quiet: file,
        human: `Wrote the heads of ${counted(sessions, 'session')} to ${file}${signed ? ', signed' : ''}`,
      });
      return 0;
    });
  },
});

/** Passes lines on, one for each session, and shows how many there were; a terminal that has them shows that itself. */
async function following<T>(
  store: HomeStore,
  lines: AsyncIterable<string>,
  context: Context,
  act: (lines: AsyncIterable<string>) => Promise<T>,
): Promise<T> {
  const total = store.countSessions();
  async function* followed(progress: ShowProgress): AsyncGenerator<string> {
    let done = 0;
    for await (const line of lines) {
      yield line;
      done = Math.min(done + 1, total);
      progress({ done, total });
    }
  }
  return await withProgress(context, (progress) => act(followed(progress('Reading sessions'))));
}

function totalsOf({ sessions, g }: { readonly sessions: number; readonly g: number }): {
  readonly sessions: number;
  readonly graph: number;
} {
  return { sessions, graph: g };
}

/**
 * Writes a file under its name once it is complete, and never replaces one.
 * @throws TAPE_EXISTS, TAPE_CANNOT_OPEN
 */
async function writeNew(file: string, lines: AsyncIterable<string>): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}.part`;
  try {
    await using handle = await open(draft, 'wx', 0o600);
    await handle.writeFile(lines);
    await handle.sync();
    linkSync(draft, file);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === undefined || cause instanceof TapeError) throw cause;
    throw code === 'EEXIST'
      ? new TapeError('TAPE_EXISTS', `cannot write '${file}': the file exists`, { cause })
      : new TapeError('TAPE_CANNOT_OPEN', `cannot write '${file}': ${systemFault(cause)}`, { cause });
  } finally {
    rmSync(draft, { force: true });
  }
}
