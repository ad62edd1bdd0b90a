import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { exit } from '../exit.ts';
import { decode, readLines } from '../input.ts';
import type { Io } from '../io.ts';
import { printArray } from '../output/array.ts';
import { exitOf, resultJson } from '../output/run.ts';
import { printAll } from '../session/background.ts';
import { isCommand, nextOf } from './asked.ts';
import { isContinued } from './editor.ts';
import type { Talk } from './talk.ts';

/**
 * Sends each line of stdin as a prompt, and prints the answers as `run` does. Asks no question. Stops at a run that did
 * not end well, since the next line would follow an answer that is not there.
 */
export async function talkInLines(talk: Talk): Promise<number> {
  const { io, options } = talk.context;
  const ended = { code: exit.done as number };
  const results = resultsOf(talk, ended);
  if (options.json === true) await printArray(io, results);
  else for await (const result of results) if (options.jsonl === true) await io.out(`${jsonText(result)}\n`);
  return io.interrupted ? exit.interrupted : ended.code;
}

async function* resultsOf(talk: Talk, ended: { code: number }): AsyncGenerator<unknown> {
  const { io, options, status } = talk.context;
  const isForProgram = options.json === true || options.jsonl === true;
  for await (const line of promptsIn(io)) {
    if (isForProgram && isCommand(line))
      throw new UsageError(`cannot run '${line.trim()}' with --json or --jsonl: lines are prompts there`, {
        hint: 'for a prompt that begins with a slash, write //',
      });
    const { start, leaves } = await nextOf(talk, line);
    if (leaves === true) return;
    if (start === undefined) continue;
    const runs = await printAll(start(), talk, talk.context);
    const [own, ...others] = runs.map(({ result }) => result);
    if (own === undefined) throw new TypeError('a run that was printed has a result');
    yield resultJson(own, others);
    ended.code = exitOf(own.finish);
    if (ended.code === exit.done) continue;
    status(`Stopped here: lines that follow were not sent`);
    return;
  }
}

/** The lines of stdin that are not empty, those together that a backslash continues. */
async function* promptsIn({ stdin, signal }: Io): AsyncGenerator<string> {
  let before: string[] = [];
  for await (const { bytes } of readLines(stdin)) {
    if (signal.aborted) return;
    const line = decode(bytes, 'stdin').replace(/\r$/, '');
    if (isContinued(line)) {
      before.push(line.slice(0, -1));
      continue;
    }
    const prompt = [...before, line].join('\n');
    before = [];
    if (prompt.trim() !== '') yield prompt;
  }
  const rest = before.join('\n');
  if (rest.trim() !== '') yield rest;
}
